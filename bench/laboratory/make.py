#!/usr/bin/env python3
"""Makes cases: make.py --seed S --out DIR --python VENV_PYTHON… --snug PATH [--kinds KIND…] [--each N] [--first N]

A case is drawn, run on a card that is large enough, run with its cure, given a card by rule, and run again until memory runs out in the stage
meant; a draw that does not come to that is drawn anew. One folder a case: case.json, settings.json, train.py and the modules beside it,
snapshot.pickle, message.txt, log.txt."""

import argparse
import json
import pathlib
import random
import re
import shutil
import sys
import time

import cards
import clean
import kinds
import remedies
import runner
import stages
from answers import ANSWERS

MOST_DRAWS = 6
MOST_SNAPSHOT = 20 << 20
RULES = {"short": cards.short, "growth": cards.growth, "states": cards.states, "temporaries": cards.temporaries, "limit": cards.part, "others": cards.part}


class Redraw(Exception):
    """This draw does not bring the cause about."""


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, required=True)
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--python", action="append", required=True, help="several take turns")
    p.add_argument("--snug", required=True)
    p.add_argument("--kinds", nargs="*", default=list(ANSWERS))
    p.add_argument("--each", type=int, default=1, help="cases of each kind")
    p.add_argument("--first", type=int, default=0, help="the number of the first, where some are there already")
    return p.parse_args()


def draw(kind, rng):
    draft = getattr(kinds, kind)(rng)
    draft.machine = {"gpu": rng.choice(kinds.GPUS), **draft.machine}
    draft.cure = draft.cure or ANSWERS[kind].cure
    keys = runner.keys_of(draft.program)
    recorded = rng.choice(["start"] * 6 + ["loaded"] * 2 + ["measure"] * 2)
    if kind in ("weights", "load_twice") and recorded == "loaded":
        recorded = "start"
    draft.settings = {key: value for key, value in draft.settings.items() if key in keys}
    draft.settings.update(record=recorded, stacks=rng.choice(["all", "all", "python"]), entries=60000)
    return draft


def measure(stack, folder, draft, change=None, memory=runner.PLENTY, rows=True):
    """The run with a change, by default on a card that is large enough."""
    settings, machine = draft.settings, draft.machine
    if change:
        changed = remedies.apply(change, settings, machine)
        if changed is None:
            raise Redraw(f"{change} cannot be followed")
        settings, machine = changed
    settings = {**settings, "record": "never"}
    if rows and "fraction" in settings:
        settings["fraction"] = 1
    work = folder / "measuring"
    runner.write_folder(work, draft.program, settings, draft.config)
    seen = runner.run(stack, work, {**machine, "others": machine.get("others") if not rows else None}, memory, record="nobody", rows=rows)
    shutil.rmtree(work)
    if rows and (seen.code != 0 or not seen.rows):
        raise Redraw(f"{'with ' + change if change else 'alone'}: code {seen.code}: {seen.log.strip().splitlines()[-1:]}")
    return seen


def fail(stack, folder, draft, memory):
    """The case's own run, whose snapshot is kept."""
    by_program = draft.settings["record"] != "measure"
    runner.write_folder(folder, draft.program, draft.settings, draft.config)
    (folder / "snapshot.pickle").unlink(missing_ok=True)
    seen = runner.run(stack, folder, draft.machine, memory, record="program" if by_program else "measure")
    snapshot = folder / "snapshot.pickle"
    if seen.out_of_memory and (not snapshot.exists() or snapshot.stat().st_size > MOST_SNAPSHOT):
        raise Redraw(f"snapshot of {snapshot.stat().st_size if snapshot.exists() else 0} bytes")
    return seen


def place_of(log):
    """The innermost line of the case's own script in the traceback."""
    frames = re.findall(r'File "[^"]*/(train\.py|loading\.py|chunked\.py)", line (\d+)', log)
    return ":".join(frames[-1]) if frames else None


def choose(stack, folder, kind, draft, rng):
    """(memory of the card, room, what a large card saw, what it saw with the cure, the failing run)."""
    base = measure(stack, folder, draft)
    cured = base if draft.how in ("limit", "others") else measure(stack, folder, draft, draft.cure)
    if draft.how == "holes":
        return choose_by_holes(stack, folder, draft, rng, base, cured)
    rule = RULES[draft.how]
    room = rule(rng, base, cured, draft.phases)
    if room is None:
        raise Redraw(f"no room: peak {base.peak >> 20} MiB, cured {cured.peak_reserved >> 20} MiB, phases {sorted({row['phase'] for row in base.rows})}")
    if draft.request_bytes:
        room = max(cured.peak_reserved, int(min(room, draft.request_bytes * rng.uniform(0.4, 0.95))))
    memory = room + base.outside_bytes
    if draft.how == "limit":
        draft.settings["fraction"] = min(draft.settings["fraction"], round(room / (1.1 * (base.peak_reserved + base.outside_bytes)), 2))
        memory = int(room / draft.settings["fraction"])
    if draft.how == "others":
        whole = int(1.1 * (base.peak_reserved + base.outside_bytes))
        parts = rng.randint(1, 3)
        draft.machine["others"] = [(whole - memory) // parts] * parts
        memory = whole
    failed = fail(stack, folder, draft, memory)
    if not failed.out_of_memory:
        raise Redraw(f"code {failed.code} with {memory >> 20} MiB, peak {base.peak >> 20} MiB: {failed.log.strip().splitlines()[-1:]}")
    if room < cured.peak_reserved and draft.how not in ("limit", "others"):  # then it is to be seen whether the cure is one
        passed = measure(stack, folder, draft, draft.cure, memory, rows=False)
        if passed.code != 0:
            raise Redraw(f"{draft.cure} does not mend it in {room >> 20} MiB: {passed.log.strip().splitlines()[-1:]}")
    return memory, room, base, cured, failed


def choose_by_holes(stack, folder, draft, rng, base, cured):
    """The largest of some cards that all tensors would fit into, on which they do not: they do with expandable segments."""
    for factor in (1.15, 1.08, 1.05, 1.03, 1.015):
        room = int(factor * base.peak)
        memory = room + base.outside_bytes
        failed = fail(stack, folder, draft, memory)
        if not failed.out_of_memory:
            continue
        passed = measure(stack, folder, draft, "expandable_segments", memory, rows=False)
        if passed.code != 0:
            raise Redraw(f"expandable segments do not mend it in {room >> 20} MiB, tensors {base.peak >> 20} MiB")
        return memory, room, base, cured, failed
    raise Redraw(f"no holes, tensors {base.peak >> 20} MiB")


def failing_row(draft, stage, base, failed, held):
    """Which of the large run's rows failed; a loop that says how far it came tells the step."""
    forward = None
    if draft.how == "growth":
        forward = len(re.findall(r"^(?:step|batch|micro-batch|evaluated) \d+", failed.log, re.M)) + 1
    i = cards.failing_row(base.rows, stage, held, forward)
    if i is None:
        raise Redraw(f"failed in {stage} with {held >> 20} MiB, which the large run does not show")
    return i


def truth(kind, draft, room, base, cured, failed, held):
    answer, right = ANSWERS[kind], stages.right(failed.log, ANSWERS[kind])
    one = {"kind": kind, "cause": answer.cause, "what": answer.what, "stage": right[-1], "stages_right": right, "cure": draft.cure,
           "room_bytes": room, "held_and_asked_bytes": held, "peak_bytes": base.peak, "peak_reserved_bytes": base.peak_reserved,
           "cured_peak_bytes": cured.peak, "cured_peak_reserved_bytes": cured.peak_reserved, "place": place_of(failed.log)}
    if draft.how != "holes":
        i = failing_row(draft, right[-1], base, failed, held)
        row, unit = base.rows[i], cards.unit_of(base.rows, i, right[-1], kind == "kept_graphs")
        one.update(failing_phase=row["phase"], failing_step=row["step"], failing_forward=row["forwards"], needed_bytes=max(row["peak"] for row in unit),
                   needed_reserved_bytes=max(row["peak_reserved"] for row in unit), needed_after_bytes=max(row["peak"] for row in base.rows[i:]))
        if one["needed_bytes"] <= room:  # then it were holes
            raise Redraw(f"failed in a step of {one['needed_bytes'] >> 20} MiB, with room for {room >> 20} MiB")
    if kind.startswith("kept_"):
        one["growth_bytes"] = cards.growth_bytes(base.rows, draft.phases[:1])
    return one


def keep(folder, seed, draft, memory, found, failed, base):
    (folder / "message.txt").write_text(clean.clean_message((folder / "stderr.txt").read_text()))
    for done in ("stderr.txt", "measure.json"):
        (folder / done).unlink(missing_ok=True)
    (folder / "log.txt").write_text(clean.clean_message(failed.log))
    clean.clean_snapshot(folder / "snapshot.pickle")
    for other in folder.glob("snapshot.pickle.rank*"):
        other.unlink()
    for junk in (*folder.glob("out"), *folder.glob("__pycache__")):
        shutil.rmtree(junk)
    (folder / "case.json").write_text(json.dumps({
        **found, "seed": seed, "program": draft.program, "memory_bytes": memory, "machine": draft.machine, "settings": draft.settings,
        "versions": base.versions, "rows": base.rows}, indent=1) + "\n")


def make(kind, number, options):
    folder = options.out / f"{kind}-{number}"
    for attempt in range(MOST_DRAWS):
        rng = random.Random(f"{options.seed} {kind} {number} {attempt}")
        stack = options.stacks[rng.randrange(len(options.stacks))]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        draft = draw(kind, rng)
        try:
            memory, room, base, cured, failed = choose(stack, folder, kind, draft, rng)
            held = clean.held_and_asked(folder / "snapshot.pickle")
            found = truth(kind, draft, room, base, cured, failed, held)
            if found["stage"] not in ANSWERS[kind].stages:
                raise Redraw(f"ran out in {found['stage']}")
            keep(folder, options.seed, draft, memory, found, failed, base)
            return found, stack, attempt
        except Redraw as reason:
            print(f"  {kind}-{number} draw {attempt}: {reason}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return None


def main():
    options = arguments()
    options.stacks = [runner.Stack.of(python, options.snug) for python in options.python]
    options.out = options.out.resolve()
    made = 0
    for number in range(options.first, options.first + options.each):
        for kind in options.kinds:
            began = time.time()
            result = make(kind, number, options)
            made += result is not None
            if result:
                found, stack, attempt = result
                print(f"{kind + '-' + str(number):24} {found['stage']:10} room {found['room_bytes'] >> 20:6} MiB of {found['peak_bytes'] >> 20:6} MiB  torch "
                      f"{'.'.join(map(str, stack.torch))}  draw {attempt}  {time.time() - began:5.1f} s", flush=True)
            else:
                print(f"{kind + '-' + str(number):24} NOT MADE  {time.time() - began:5.1f} s", flush=True)
    print(f"{made} cases")


if __name__ == "__main__":
    sys.exit(main())
