#!/usr/bin/env python3
"""Does what the first advice says, and runs the case again on the same card: try.py DIR… --python VENV_PYTHON… --snug PATH [--kinds KIND…] [--cure]

The advice's `do` (a word of remedies.py, several joined by +, `word=value` where it names one) is applied to the settings of the case's script.
Tells whether it passes, and by how much the peak of what failed fell against `most_bytes`, which was promised. A word that the script cannot
follow does not pass. --cure takes the known cure instead of the advice, which checks the laboratory itself."""

import argparse
import collections
import json
import pathlib
import shutil
import sys
import tempfile

import remedies
import runner
from answers import ANSWERS
from judge import cases, explain


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folders", nargs="+", type=pathlib.Path)
    p.add_argument("--python", action="append", required=True, help="the one of the case's release of PyTorch is taken")
    p.add_argument("--snug", required=True)
    p.add_argument("--kinds", nargs="*")
    p.add_argument("--cure", action="store_true")
    p.add_argument("--message", action="store_true", help="the advice of the message alone")
    p.add_argument("--json", type=pathlib.Path, help="every case and what came of it")
    return p.parse_args()


def advised(options, folder, case):
    """(words, promised bytes) of the first advice."""
    if options.cure:
        return [case["cure"]], None
    said = explain(options.snug, folder / ("message.txt" if options.message else "snapshot.pickle"))
    first = (said.get("advice") or [{}])[0]
    words = first.get("do") or []
    return words.split("+") if isinstance(words, str) else words, first.get("most_bytes")


def peak_of_what_failed(case, rows):
    """The peak until the end of the step that failed."""
    def within(row):
        if case.get("failing_step") is None or case.get("growth_bytes") is None:
            return True
        return (row["step"], row["forwards"]) <= (case["failing_step"], case["failing_forward"]) or row["step"] < case["failing_step"]
    return max((row["peak"] for row in rows if within(row)), default=0)


def tried(options, stacks, folder, case):
    words, promised = advised(options, folder, case)
    outcome = {"case": str(folder), "kind": case["kind"], "do": words, "promised_bytes": promised, "passes": False, "fell_bytes": None}
    if not words:
        return {**outcome, "why": "no advice that can be followed"}
    settings, machine = case["settings"], case["machine"]
    for word in words:
        changed = remedies.apply(word, settings, machine)
        if changed is None:
            return {**outcome, "why": f"{word} cannot be followed here"}
        settings, machine = changed
    stack = stacks.get(case["versions"]["torch"].split("+")[0].rsplit(".", 1)[0])
    if stack is None:
        return {**outcome, "why": "no --python with PyTorch " + case["versions"]["torch"]}
    config = folder / "model" / "config.json"
    memory = machine.get("memory", runner.PLENTY if machine.get("larger") else case["memory_bytes"])
    with tempfile.TemporaryDirectory(prefix="snug-laboratory-") as work:
        work = pathlib.Path(work)
        runner.write_folder(work, case["program"], {**settings, "record": "never"}, json.loads(config.read_text()) if config.exists() else None)
        seen = runner.run(stack, work, machine, memory, record="nobody", rows=True)
        outcome.update(passes=seen.code == 0, why=None if seen.code == 0 else seen.log.strip().splitlines()[-1][:120])
        if seen.out_of_memory and promised:
            if "fraction" in settings:
                settings["fraction"] = 1
            shutil.rmtree(work / "out", ignore_errors=True)
            runner.write_folder(work, case["program"], {**settings, "record": "never"}, None)
            seen = runner.run(stack, work, {**machine, "others": None}, runner.PLENTY, record="nobody", rows=True)
        if seen.rows:
            outcome["fell_bytes"] = peak_of_what_failed(case, case["rows"]) - peak_of_what_failed(case, seen.rows)
    return outcome


def kept_its_word(outcome):
    """None where nothing was promised."""
    if not outcome["promised_bytes"] or outcome["fell_bytes"] is None:
        return None
    return outcome["fell_bytes"] >= outcome["promised_bytes"] / 2


def main():
    options = arguments()
    stacks = {".".join(map(str, stack.torch)): stack for stack in (runner.Stack.of(python, options.snug) for python in options.python)}
    outcomes = []
    for folder, case in cases(options.folders, options.kinds):
        outcome = tried(options, stacks, folder, case)
        outcomes.append(outcome)
        if not outcome["passes"]:
            print(f"{folder.parent.name}/{folder.name:24} {'+'.join(outcome['do']) or '-':28} {outcome['why']}", flush=True)
    by_kind = collections.defaultdict(list)
    for outcome in outcomes:
        by_kind[outcome["kind"]].append(outcome)
    print(f"{'kind':22} {'cases':>5} {'passes':>7} {'by a larger card':>17} {'gives half of what it promised':>32}")
    for kind, rows in [*((kind, by_kind[kind]) for kind in ANSWERS if by_kind[kind]), ("all", outcomes)]:
        words = [word for word in map(kept_its_word, rows) if word is not None]
        larger = sum(word.startswith("larger_card") for row in rows for word in row["do"])
        print(f"{kind:22} {len(rows):5} {sum(row['passes'] for row in rows):7} {larger:17} {f'{sum(words)} of {len(words)}' if words else '-':>32}")
    if options.json:
        options.json.write_text(json.dumps(outcomes, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
