#!/usr/bin/env python3
"""Asks `snug explain` about texts whose cause is known, and tells how often it is right: judge.py FOLDER --snug PATH [--truth FILE] [--wrong] [--json FILE]

FOLDER holds the texts and truth.json, a list of `file`, `cause`, `also` (a cause as right, or null), `stage`, `also_stage` and `best`, the two best
advices: a word of `do`, or, behind a slash, a pattern that the advice's sentence has to match. Other keys are for readers."""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

COLUMNS = ("cause", "one of two", "stage", "first advice", "among three")


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--snug")
    p.add_argument("--truth", type=pathlib.Path, help="instead of FOLDER/truth.json")
    p.add_argument("--wrong", action="store_true", help="lines for each text that is not answered rightly")
    p.add_argument("--json", type=pathlib.Path, help="every text and what was said of it")
    p.add_argument("--opinion", type=pathlib.Path, help="in place of snug's answers those of a person: a list of file, cause, first, second, sentence")
    return p.parse_args()


def explain(snug, path):
    done = subprocess.run([snug, "explain", str(path), "--json"], capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {"failed": (done.stderr or done.stdout).strip()[:200]}


def opinions(path):
    """A person's answers in the form of snug's; no stage was asked for."""
    return {one["file"]: {"cause": one["cause"], "advice": [{"do": one["first"], "change": one["sentence"]}, {"do": one["second"], "change": ""}]}
            for one in json.loads(path.read_text())}


def is_best(advice, best):
    return any(re.search(one[1:], advice["change"], re.IGNORECASE) if one.startswith("/") else advice.get("do") == one for one in best)


def judged(said, truth):
    advice = said.get("advice") or []
    causes, stages = [truth["cause"], truth["also"]], [truth["stage"], truth["also_stage"]]
    cause, either, stage = said.get("cause"), said.get("or_cause"), said.get("stage")
    return {
        "file": truth["file"], "truth": truth["cause"],
        "cause": cause is not None and cause in causes,
        "one of two": cause is not None and (cause in causes or (either is not None and either in causes)),
        "stage": stage is not None and stage in stages,
        "first advice": bool(advice) and is_best(advice[0], truth["best"]),
        "among three": any(is_best(one, truth["best"]) for one in advice[:3]),
        "said": [said.get("failed") or cause, either, stage, *(one["change"] for one in advice[:3])],
        "wanted": [causes, stages, truth["best"]]}


def line(name, rows):
    shares = [f"{sum(row[column] for row in rows):3} of {len(rows):3}" for column in COLUMNS]
    return f"{name:20} {len(rows):5}  " + "  ".join(f"{one:>12}" for one in shares)


def main():
    options = arguments()
    truths = json.loads((options.truth or options.folder / "truth.json").read_text())
    told = opinions(options.opinion) if options.opinion else None
    rows = [judged(told[truth["file"]] if told else explain(options.snug, options.folder / truth["file"]), truth) for truth in truths]
    by_cause = collections.defaultdict(list)
    for row in rows:
        by_cause[row["truth"]].append(row)
        if options.wrong and not (row["cause"] and row["stage"] and row["first advice"]):
            misses = ", ".join(column for column in ("cause", "stage", "first advice") if not row[column])
            print(f"{row['file']}: {misses}\n    said   {row['said']}\n    wanted {row['wanted']}")
    print(f"{'cause':20} {'texts':>5}  " + "  ".join(f"{column:>12}" for column in COLUMNS))
    for cause in sorted(by_cause):
        print(line(cause, by_cause[cause]))
    print(line("all", rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
