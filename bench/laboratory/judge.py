#!/usr/bin/env python3
"""Asks `snug explain` about every case, and tells how often it is right: judge.py DIR… --snug PATH [--kinds KIND…] [--wrong] [--json FILE]

By kind: cases; of those the snapshots whose cause is right, and what was short with it, and whose stage; and the messages alone of which this is
so. Then sums; how far the memory that the step would have taken, and the growth a step, are from those of a large card; and how often the first
advice is one that is known not to help."""

import argparse
import collections
import json
import pathlib
import subprocess
import sys

import stages
from answers import ANSWERS

NOT_IN_A_SNAPSHOT = {"other_process"}  # neither the card's size nor who else is on it; the message tells both
PACKING = {"expandable_segments", "empty_cache"}  # of no use where tensors do not fit


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folders", nargs="+", type=pathlib.Path)
    p.add_argument("--snug", required=True)
    p.add_argument("--kinds", nargs="*")
    p.add_argument("--wrong", action="store_true", help="a line for each answer that is not right")
    p.add_argument("--json", type=pathlib.Path, help="every case and its answers")
    return p.parse_args()


def cases(folders, wanted=None):
    for top in folders:
        for path in sorted(top.rglob("case.json")):
            case = json.loads(path.read_text())
            if not wanted or case["kind"] in wanted:
                yield path.parent, case


def explain(snug, path):
    done = subprocess.run([snug, "explain", str(path), "--json"], capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {"failed": (done.stderr or done.stdout).strip()[:200]}


def right_cause(answer, said):
    return said.get("cause") == answer.cause and (answer.what is None or said.get("what") == answer.what)


def first_word(said):
    return next((advice.get("do") for advice in said.get("advice") or []), None)


def said_in_short(said):
    return [said.get("cause", said.get("failed")), said.get("what"), said.get("stage"), first_word(said)]


def judged(snug, folder, case):
    answer = ANSWERS[case["kind"]]
    snapshot, message = explain(snug, folder / "snapshot.pickle"), explain(snug, folder / "message.txt")
    needed = (snapshot.get("figures") or {}).get("needed_bytes") or snapshot.get("needed_bytes")
    growth = snapshot.get("growth") or {}
    grown = {growth.get("active_bytes_a_step"), sum(one["bytes_a_step"] for one in growth.get("list") or [])}  # in blocks, or of what is named
    told = case["kind"] not in NOT_IN_A_SNAPSHOT
    return {
        "case": str(folder), "kind": case["kind"], "torch": case["versions"].get("torch", ""),
        "cause": snapshot.get("cause") == answer.cause if told else None, "what": right_cause(answer, snapshot) if told else None,
        "stage": snapshot.get("stage") in stages.right((folder / "log.txt").read_text(), answer),
        "message_cause": message.get("cause") == answer.cause, "message_either": answer.cause in (message.get("cause"), message.get("or_cause")),
        "message_what": right_cause(answer, message),
        "useless": answer.cause == "shortage" and first_word(snapshot) in PACKING,
        "needed": needed / case["needed_bytes"] if needed and case.get("needed_bytes") else None,
        "needs_known": bool(case.get("needed_bytes")),
        "growth": case["growth_bytes"] in grown if case.get("growth_bytes") else None,
        "said": said_in_short(snapshot), "message_said": said_in_short(message), "truth": [answer.cause, answer.what, case["stage"], answer.cure]}


def share(rows, key):
    known = [row[key] for row in rows if row[key] is not None]
    return f"{sum(known):4} of {len(known):4}" if known else "           -"


def line(name, rows):
    return f"{name:22} {len(rows):5}  " + "  ".join(share(rows, key) for key in ("cause", "what", "stage", "message_cause", "message_either", "message_what", "useless"))


def main():
    options = arguments()
    rows = [judged(options.snug, folder, case) for folder, case in cases(options.folders, options.kinds)]
    by_kind = collections.defaultdict(list)
    for row in rows:
        by_kind[row["kind"]].append(row)
        if options.wrong and not (row["what"] and row["stage"]):
            print(f"{row['case']}\n    said {row['said']}, truth {row['truth']}; message {row['message_said']}")
    heads = ("cause", "… and what", "stage", "message", "one of two", "… and what", "of no use")
    print(f"{'kind':22} {'cases':>5}  " + "  ".join(f"{head:>12}" for head in heads))
    for kind in ANSWERS:
        if by_kind[kind]:
            print(line(kind, by_kind[kind]))
    print(line("all", rows))
    for release in sorted({row["torch"] for row in rows}):
        print(line("torch " + release, [row for row in rows if row["torch"] == release]))
    known = sum(row["needs_known"] for row in rows)
    needs = [row["needed"] for row in rows if row["needed"] is not None]
    print(f"needed bytes within 3 %: {sum(abs(one - 1) <= 0.03 for one in needs)} of {len(needs)} told, of {known} known; "
          f"growth to the byte: {share(rows, 'growth').strip()}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
