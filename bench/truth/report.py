"""The tables of docs/truth.md, from judged rows."""

import collections

MARK = "<!-- written by bench/truth.sh -->"


def at(values, share):
    """The value below which `share` of them lie, between neighbours."""
    values = sorted(values)
    place = share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def signed(value):
    return f"{value:+.3f}" if abs(value) < 1 else f"{value:+.1f}"


def spread(errors):
    """Median, 5th and 95th percentile of signed errors, median and 95th of their size, share of under-estimates."""
    sizes = [abs(e) for e in errors]
    under = sum(e < 0 for e in errors)
    return [str(len(errors)), signed(at(errors, 0.5)), signed(at(errors, 0.05)), signed(at(errors, 0.95)), f"{at(sizes, 0.5):.3f}",
            f"{at(sizes, 0.95):.3f}", f"{100 * under / len(errors):.0f} %"]


def table(head, lines):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(line) + " |" for line in lines])


HEAD = ["rows", "median", "p5", "p95", "median size", "p95 size", "under"]


def by(judged, name, key):
    groups = collections.defaultdict(list)
    for row in judged:
        groups[key(row)].append(row["error"])
    return table([name, *HEAD], [[str(group), *spread(errors)] for group, errors in sorted(groups.items())])


def without_each(judged):
    lines = []
    for source in sorted({row["source"] for row in judged}):
        rest = [row["error"] for row in judged if row["source"] != source]
        if rest:
            lines.append([source, *spread(rest)])
    return table(["without", *HEAD], lines)


def share(part, whole):
    return f"{part} of {whole} ({100 * part / whole:.0f} %)" if whole else "no rows"


def inside(rows):
    """How rows of tier C lie to the interval that was told."""
    below = [r for r in rows if r["most_bytes"] < r["low_bytes"]]
    above = [r for r in rows if r["least_bytes"] > r["high_bytes"]]
    width = at([100 * (r["high_bytes"] - r["low_bytes"]) / ((r["least_bytes"] + r["most_bytes"]) / 2) for r in rows], 0.5)
    return [str(len(rows)), share(len(rows) - len(below) - len(above), len(rows)), share(len(above), len(rows)), f"{width:.1f} %"]


def tier_c(judged):
    rows = [r for r in judged if r["tier"] == "C"]
    if not rows:
        return "No row of tier C was answered."
    lines = [["all", *inside(rows)]]
    for trainer in sorted({r["trainer"] for r in rows}):
        lines.append([trainer, *inside([r for r in rows if r["trainer"] == trainer])])
    return table(["tier C", "rows", "inside", "above it", "width, median"], lines)


def left_out(judged, silent):
    groups = collections.Counter((r["tier"], r["left_out"], r["trainer"]) for r in judged if r["left_out"])
    lines = [[tier, str(count), trainer, why] for (tier, why, trainer), count in sorted(groups.items(), key=lambda g: (g[0][0], -g[1]))]
    lines.append(["", str(silent), "", "batch or length not stated"])
    return table(["tier", "rows", "of", "why"], lines)


def summary(ran, answered):
    """What is wanted, and what came."""
    lines = []
    for tier, median, most in (("A", 0.1, 1), ("B", 3, 10)):
        sizes = [abs(r["error"]) for r in ran if r["tier"] == tier]
        if sizes:
            lines.append([f"tier {tier}: size of the error", f"median ≤ {median} %, p95 ≤ {most} %",
                          f"median {at(sizes, 0.5):.3f} %, p95 {at(sizes, 0.95):.3f} %, {len(sizes)} rows"])
    rows = [r for r in ran if r["tier"] == "C"]
    if rows:
        count, within, above, width = inside(rows)
        lines += [["tier C: inside the interval", "≥ 85 %", within], ["tier C: above it", "≤ 4 %", above],
                  ["tier C: width, median", "≤ 20 %", width]]
    ran_out = [r for r in answered if r["out_of_memory"]]
    lines.append(["ran out, and planned not to fit", "≥ 92 %", share(sum(not r["fits"] for r in ran_out), len(ran_out))])
    lines.append(["ran, and planned not to fit", "≤ 2 %", share(sum(not r["fits"] for r in ran), len(ran))])
    return table(["", "wanted", "came"], lines)


def text(judged, silent):
    ran = [r for r in judged if "error" in r]
    parts = [f"Of {len(judged) + silent} published rows {len(judged)} state batch and length; {sum(not r['left_out'] for r in judged)} are answered."]
    parts.append(summary(ran, [r for r in judged if not r["left_out"]]))
    if ran:
        parts += [by(ran, "tier", lambda r: r["tier"]), by(ran, "tier, source", lambda r: f"{r['tier']} {r['source']}"),
                  by(ran, "tier, method", lambda r: f"{r['tier']} {r['method']}"), without_each(ran), tier_c(ran)]
    parts.append(left_out(judged, silent))
    return "\n\n".join(parts)


def write(page, text):
    """Puts the tables between the two marks of a page."""
    before, _, after = page.read_text().split(MARK)
    page.write_text(f"{before}{MARK}\n\n{text}\n\n{MARK}{after}")
