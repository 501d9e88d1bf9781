"""A picture of judged rows: planned bytes over measured bytes, a dot a row, a panel a tier. Plain SVG."""

import math

PANEL, GAP, TOP, LEFT, HEIGHT = 250, 46, 44, 52, 250
COLOURS = {"full": "#b4462f", "LoRA": "#1f6f8b", "QLoRA": "#c08a1e"}
SMALLEST, LARGEST = 4 * 2**30, 90 * 2**30  # bytes on both axes
TICKS = [4, 8, 16, 32, 64]


def kind(row):
    name = row["method"].lower()
    return "full" if name.startswith("full") else "QLoRA" if name.startswith("q") else "LoRA"


def place(size):
    """0 … 1 along an axis."""
    size = min(max(size, SMALLEST), LARGEST)
    return math.log(size / SMALLEST) / math.log(LARGEST / SMALLEST)


def panel(judged, tier, left):
    x, y = (lambda size: left + place(size) * PANEL), (lambda size: TOP + HEIGHT - place(size) * HEIGHT)
    rows = [r for r in judged if r["tier"] == tier and "error" in r]
    parts = [f'<text x="{left}" y="{TOP - 12}" class="title">tier {tier}: {len(rows)} rows</text>',
             f'<rect x="{left}" y="{TOP}" width="{PANEL}" height="{HEIGHT}" class="frame"/>']
    for tick in TICKS:
        size = tick * 2**30
        parts += [f'<line x1="{x(size):.1f}" y1="{TOP}" x2="{x(size):.1f}" y2="{TOP + HEIGHT}" class="grid"/>',
                  f'<line x1="{left}" y1="{y(size):.1f}" x2="{left + PANEL}" y2="{y(size):.1f}" class="grid"/>',
                  f'<text x="{x(size):.1f}" y="{TOP + HEIGHT + 15}" text-anchor="middle">{tick}</text>']
        if tier == "A":
            parts.append(f'<text x="{left - 6}" y="{y(size) + 4:.1f}" text-anchor="end">{tick}</text>')
    parts.append(f'<line x1="{left}" y1="{TOP + HEIGHT}" x2="{left + PANEL}" y2="{TOP}" class="equal"/>')
    for row in rows:
        measured = (row["least_bytes"] + row["most_bytes"]) / 2
        if tier == "C":
            parts.append(f'<line x1="{x(measured):.1f}" y1="{y(row["low_bytes"]):.1f}" x2="{x(measured):.1f}" y2="{y(row["high_bytes"]):.1f}" '
                         f'stroke="{COLOURS[kind(row)]}" stroke-opacity="0.45" stroke-width="2"/>')
        parts.append(f'<circle cx="{x(measured):.1f}" cy="{y(row["planned_bytes"]):.1f}" r="3.2" fill="{COLOURS[kind(row)]}" fill-opacity="0.7"/>')
    return parts


def svg(judged):
    width, height = LEFT + 3 * PANEL + 2 * GAP + 20, TOP + HEIGHT + 62
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
             'aria-label="planned over measured bytes, by tier">',
             "<style>text{font:12px system-ui,sans-serif;fill:#333}.title{font-weight:600}.frame{fill:none;stroke:#999}"
             ".grid{stroke:#e3e3e3}.equal{stroke:#777;stroke-dasharray:4 3}</style>",
             f'<rect width="{width}" height="{height}" fill="#fff"/>']
    for i, tier in enumerate("ABC"):
        parts += panel(judged, tier, LEFT + i * (PANEL + GAP))
    middle = TOP + HEIGHT + 36
    parts.append(f'<text x="{LEFT + PANEL * 1.5 + GAP}" y="{middle}" text-anchor="middle">measured, GiB</text>')
    parts.append(f'<text transform="translate(14 {TOP + HEIGHT / 2}) rotate(-90)" text-anchor="middle">planned, GiB</text>')
    for i, (name, colour) in enumerate(COLOURS.items()):
        parts += [f'<circle cx="{LEFT + 6 + 80 * i}" cy="{middle - 4}" r="4" fill="{colour}"/>',
                  f'<text x="{LEFT + 16 + 80 * i}" y="{middle}">{name}</text>']
    return "\n".join(parts + ["</svg>"]) + "\n"
