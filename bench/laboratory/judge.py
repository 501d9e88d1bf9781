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

import cards
import recipes
import stages
from answers import ANSWERS

NOT_IN_A_SNAPSHOT = {"other_process"}  # neither the card's size nor who else is on it; the message tells both
COUNTED = {"growing_lengths", "kept_graphs", "kept_outputs", "kept_by_hooks", "kept_in_loop"}  # the script's log says which pass failed
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


def explain(snug, path, *words):
    done = subprocess.run([snug, "explain", path.name, *words, "--json"], capture_output=True, text=True, cwd=path.parent)
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


def explain_with_recipe(snug, folder, case):
    """The snapshot with the recipe of its script beside it, as somebody has who started it; none for scripts that no recipe describes."""
    name = recipes.write_recipe(case, folder)
    if name is None:
        return None
    return explain(snug, folder / "snapshot.pickle", name, "--gpu", case["machine"]["gpu"], "--stack", recipes.stack_of(case))


def needed_by_large_card(case):
    """Of the step that failed, from where it failed on."""
    if not case.get("needed_bytes"):
        return None
    forward = case["failing_forward"] if case["kind"] in COUNTED else None
    here = cards.failing_row(case["rows"], case["stage"], case["held_and_asked_bytes"], forward)
    return max(row["peak"] for row in cards.unit_of(case["rows"], here, case["stage"], case["kind"] == "kept_graphs"))


def judged(snug, folder, case):
    answer = ANSWERS[case["kind"]]
    snapshot, message = explain(snug, folder / "snapshot.pickle"), explain(snug, folder / "message.txt")
    with_recipe = explain_with_recipe(snug, folder, case)
    truly, said = needed_by_large_card(case), with_recipe or snapshot
    growth = snapshot.get("growth") or {}
    grown = {growth.get("active_bytes_a_step"), growth.get("kept_bytes_a_step")}
    told = case["kind"] not in NOT_IN_A_SNAPSHOT
    return {
        "case": str(folder), "kind": case["kind"], "torch": case["versions"].get("torch", ""),
        "cause": snapshot.get("cause") == answer.cause if told else None, "what": right_cause(answer, snapshot) if told else None,
        "stage": snapshot.get("stage") in stages.right((folder / "log.txt").read_text(), answer),
        "message_cause": message.get("cause") == answer.cause, "message_either": answer.cause in (message.get("cause"), message.get("or_cause")),
        "message_what": right_cause(answer, message),
        "useless": answer.cause == "shortage" and first_word(snapshot) in PACKING,
        "needed": (said.get("needed_bytes") or 0) / truly if truly else None, "needed_whole": bool(said.get("needed_whole")),
        "cause_with_recipe": right_cause(answer, with_recipe) if with_recipe and told else None,
        "growth": case["growth_bytes"] in grown if case.get("growth_bytes") else None,
        "said": said_in_short(snapshot), "message_said": said_in_short(message), "truth": [answer.cause, answer.what, case["stage"], answer.cure]}


def share(rows, key):
    known = [row[key] for row in rows if row[key] is not None]
    return f"{sum(known):4} of {len(known):4}" if known else "           -"


def line(name, rows):
    return f"{name:22} {len(rows):5}  " + "  ".join(share(rows, key) for key in ("cause", "what", "stage", "message_cause", "message_either", "message_what", "useless"))


def main():
    options = arguments()
    options.snug = str(pathlib.Path(options.snug).resolve())
    rows = [judged(options.snug, folder, case) for folder, case in cases(options.folders, options.kinds)]
    by_kind = collections.defaultdict(list)
    for row in rows:
        by_kind[row["kind"]].append(row)
        if options.wrong and not (row["what"] and row["stage"]):
            print(f"{row['case']}\n    said {row['said']}, truth {row['truth']}; message {row['message_said']}")
        if options.wrong and row["needed"] and abs(row["needed"] - 1) > 0.03:
            print(f"{row['case']}\n    needed {row['needed']:.3f} of what a large card says, {'told' if row['needed_whole'] else 'as a least'}")
    heads = ("cause", "… and what", "stage", "message", "one of two", "… and what", "of no use")
    print(f"{'kind':22} {'cases':>5}  " + "  ".join(f"{head:>12}" for head in heads))
    for kind in ANSWERS:
        if by_kind[kind]:
            print(line(kind, by_kind[kind]))
    print(line("all", rows))
    for release in sorted({row["torch"] for row in rows}):
        print(line("torch " + release, [row for row in rows if row["torch"] == release]))
    needs = [row for row in rows if row["needed"] is not None]
    near = [row for row in needs if abs(row["needed"] - 1) <= 0.03]
    print(f"needed bytes within 3 %: {len(near)} of {len(needs)} ({sum(row['needed_whole'] for row in needs)} told, the others as a least); "
          f"growth to the byte: {share(rows, 'growth').strip()}; cause and what with the recipe beside: {share(rows, 'cause_with_recipe').strip()}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
