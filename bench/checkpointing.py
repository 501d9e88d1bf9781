#!/usr/bin/env python3
"""Checkpointing to a budget (docs/benchmarks.md): for three shapes twelve budgets from the least that every block recomputed needs to what
nothing recomputed needs; planned and measured time of a step. Each is measured beside the step that keeps everything, which runs right before
and after it. checkpointing.py [--steps N] [--only TEXT] [--snug SNUG] [--step STEP] [--threads N]"""

import argparse
import itertools
import json
import os
import re
import subprocess
import tempfile

SHAPES = ["HuggingFaceTB/SmolLM2-135M --method lora --lora-target-modules all-linear --bf16 --batch 2 --seq 256",
          "HuggingFaceTB/SmolLM2-135M --method full --bf16 --batch 2 --seq 256 --optim adafactor",
          "openai-community/gpt2 --method lora --lora-target-modules all-linear --batch 2 --seq 256"]
BUDGETS = 12


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--steps", type=int, default=9)
    p.add_argument("--only", default="", help="shapes whose words hold this")
    p.add_argument("--snug", default="build/snug")
    p.add_argument("--step", default="build/bench/step")
    p.add_argument("--threads", default="2")
    return p.parse_args()


class Machine:
    def __init__(self, a):
        self.a = a

    def plan(self, keys):
        done = subprocess.run([self.a.snug, "plan", *keys, "--threads", self.a.threads, "--json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def measure(self, keys):
        """Seconds of the median step."""
        done = subprocess.run([self.a.step, *keys, "--threads", self.a.threads, "--steps", str(self.a.steps)], capture_output=True, text=True, check=True)
        return float(re.search(r"([\d.]+) s a step", done.stdout)[1])


def seconds_of(plan):
    return plan["cost"]["step_seconds"]


def agreeing(rows):
    """(pairs that are measured in the order planned, pairs planned 3 % apart or more)."""
    pairs = [(a, b) for a, b in itertools.combinations(rows, 2) if abs(a[1] - b[1]) >= 0.03 * min(a[1], b[1])]
    return sum((a[1] < b[1]) == (a[2] < b[2]) for a, b in pairs), len(pairs)


def shape(machine, words):
    keys = words.split()
    kept = machine.plan(keys)
    blocks_keys = [*keys, "--gradient-checkpointing", "true"]
    blocks = machine.plan(blocks_keys)
    most, least = kept["peak_bytes"], blocks["peak_bytes"]
    print(f"\n`{words}`: {most / 2**20:.0f} MiB keep everything, {least / 2**20:.0f} MiB recompute every block\n")
    print("| budget | planned | measured | of keeping everything: planned | measured |\n|---:|---:|---:|---:|---:|")
    before = machine.measure(keys)
    rows, whole = [], None
    points = [("every block", blocks_keys)] + [
        (f"{(least + (most - least) * i // (BUDGETS - 1)) / 2**20:.0f} MiB",
         [*keys, "--gradient-checkpointing", "auto", "--memory", f"{least + (most - least) * i // (BUDGETS - 1)}B"]) for i in range(BUDGETS)]
    points.append(("every block's and 10 %", [*keys, "--gradient-checkpointing", "auto", "--memory", f"{least * 11 // 10}B"]))
    for name, with_budget in points:
        planned = seconds_of(machine.plan(with_budget))
        measured = machine.measure(with_budget)
        after = machine.measure(keys)
        relative = 2 * measured / (before + after)
        print(f"| {name} | {planned:.3f} s | {measured:.3f} s | {planned / seconds_of(kept):.3f} | {relative:.3f} |", flush=True)
        before = after
        if name == "every block":
            whole = relative
        elif "10 %" in name:
            more = relative
        else:
            rows.append((name, planned / seconds_of(kept), relative))
    right, pairs = agreeing(rows)
    worst = max(abs(planned / measured - 1) for _, planned, measured in rows)
    print(f"\nin the order planned: {right} of {pairs} pairs planned 3 % apart or more; planned within {100 * worst:.1f} % of measured; beside "
          f"every block recomputed: {rows[0][2] / whole:.3f} of its time in its own peak, {more / whole:.3f} with 10 % more")
    planned_times = [row[1] for row in rows]
    assert all(b <= a * (1 + 1e-9) for a, b in zip(planned_times, planned_times[1:])), "planned time rises with memory"
    return right, pairs


def main():
    a = arguments()
    machine = Machine(a)
    with tempfile.TemporaryDirectory() as cache:  # receipts of its own
        os.environ["XDG_CACHE_HOME"] = cache
        os.environ["GOMP_SPINCOUNT"] = "20000"  # as snug train sets it
        print(subprocess.run([a.snug, "probe"], capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1])
        totals = [shape(machine, words) for words in SHAPES if a.only in words]
    print(f"\nin the order planned: {sum(t[0] for t in totals)} of {sum(t[1] for t in totals)} pairs")


if __name__ == "__main__":
    main()
