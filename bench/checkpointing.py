#!/usr/bin/env python3
"""Checkpointing to a budget (docs/benchmarks.md): for three shapes twelve budgets from the least that every block recomputed needs to what
nothing recomputed needs; planned and measured time of a step. Each is measured between two steps that keep everything (bench/turns.cpp). With
--parts instead what each of checkpoint_parts does to three models of published shapes (random weights): runs of `snug train`, bytes and time,
and whether the result is the same to the bit.
checkpointing.py [--parts] [--steps N] [--only TEXT] [--snug SNUG] [--turns TURNS] [--threads N] [--gsm8k DIRECTORY]"""

import argparse
import hashlib
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

SHAPES = ["HuggingFaceTB/SmolLM2-135M --method lora --lora-target-modules all-linear --bf16 --batch 2 --seq 256",
          "HuggingFaceTB/SmolLM2-135M --method full --bf16 --batch 2 --seq 256 --optim adafactor",
          "openai-community/gpt2 --method lora --lora-target-modules all-linear --batch 2 --seq 256"]
BUDGETS = 12
TOGETHER = 4
TRAINED = {"HuggingFaceTB/SmolLM2-135M": "--method lora --lora-target-modules all-linear --bf16",
           "openai-community/gpt2": "--method lora --lora-target-modules all-linear",
           "Qwen/Qwen2.5-0.5B": "--method full --bf16 --optim adafactor"}
PARTS = ["norms", "activations", "attention", "projections"]


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--steps", type=int, default=9)
    p.add_argument("--only", default="", help="shapes whose words hold this")
    p.add_argument("--snug", default="build/snug")
    p.add_argument("--turns", default="build/bench/turns")
    p.add_argument("--threads", default="2")
    p.add_argument("--parts", action="store_true")
    p.add_argument("--gsm8k", default="../shared/data/gsm8k")
    return p.parse_args()


class Machine:
    def __init__(self, a):
        self.a = a

    def plan(self, keys):
        done = subprocess.run([self.a.snug, "plan", *keys, "--threads", self.a.threads, "--json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def measure(self, first, recipes):
        """(median seconds, median ratio to steps of `first` before and after) of each; as many in one process as fit in memory anywhere."""
        words = [" ".join([*keys, "--threads", self.a.threads]) for keys in [first, *recipes]]
        lines = []
        for at in range(1, len(words), TOGETHER):
            done = subprocess.run([self.a.turns, str(self.a.steps), words[0], *words[at:at + TOGETHER]], stdout=subprocess.PIPE, text=True, check=True)
            lines += done.stdout.splitlines()[1:]
        return [tuple(map(float, line.split()[1:3])) for line in lines]


def seconds_of(plan):
    return plan["cost"]["step_seconds"]


def apart(rows):
    """Of these, from the slowest planned on, each that is planned 3 % faster than the last taken or more."""
    taken = []
    for row in sorted(rows, key=lambda row: -row[1]):
        if not taken or taken[-1][1] >= 1.03 * row[1]:
            taken.append(row)
    return taken


def rank_correlation(rows):
    """Spearman's, of times planned and measured."""
    def places(column):
        return [sorted(row[column] for row in rows).index(row[column]) for row in rows]
    squares = sum((a - b) ** 2 for a, b in zip(places(1), places(2)))
    return 1 - 6 * squares / (len(rows) * (len(rows) ** 2 - 1))


def shape(machine, words):
    keys = words.split()
    kept = machine.plan(keys)
    blocks_keys = [*keys, "--gradient-checkpointing", "true"]
    blocks = machine.plan(blocks_keys)
    most, least = kept["peak_bytes"], blocks["peak_bytes"]
    print(f"\n`{words}`: {most / 2**20:.0f} MiB keep everything, {least / 2**20:.0f} MiB recompute every block\n")
    print("| budget | planned | measured | of keeping everything: planned | measured |\n|---:|---:|---:|---:|---:|")
    points = [("every block", blocks_keys)] + [
        (f"{(least + (most - least) * i // (BUDGETS - 1)) / 2**20:.0f} MiB",
         [*keys, "--gradient-checkpointing", "auto", "--memory", f"{least + (most - least) * i // (BUDGETS - 1)}B"]) for i in range(BUDGETS)]
    points.append(("every block's and 10 %", [*keys, "--gradient-checkpointing", "auto", "--memory", f"{least * 11 // 10}B"]))
    planned = [seconds_of(machine.plan(point)) for _, point in points]
    measured = machine.measure(keys, [point for _, point in points])
    for (name, _), seconds, (median, ratio) in zip(points, planned, measured):
        print(f"| {name} | {seconds:.3f} s | {median:.3f} s | {seconds / seconds_of(kept):.3f} | {ratio:.3f} |", flush=True)
    whole, more = measured[0][1], measured[-1][1]
    rows = [(name, seconds / seconds_of(kept), ratio) for (name, _), seconds, (_, ratio) in list(zip(points, planned, measured))[1:-1]]
    distinct = apart(rows)
    worst = max(abs(planned / measured - 1) for _, planned, measured in rows)
    print(f"\nrank correlation {rank_correlation(distinct):.3f} of {len(distinct)} budgets planned 3 % apart or more; planned within {100 * worst:.1f} % of "
          f"measured; beside every block recomputed: {rows[0][2] / whole:.3f} of its time in its own peak, {more / whole:.3f} with 10 % more", flush=True)
    planned_times = [row[1] for row in rows]
    assert all(b <= a * (1 + 1e-9) for a, b in zip(planned_times, planned_times[1:])), "planned time rises with memory"


def keys_of(a, words):
    return [*words, "--batch", "2", "--seq", "256", "--packing", "true", "--max-steps", str(a.steps), "--threads", a.threads]


def trained(a, folder, words):
    """Median seconds of a step, peak measured, the result's digest."""
    out = folder / "out"
    subprocess.run([a.snug, "train", folder / "model", *keys_of(a, words), "--data", f"{a.gsm8k}/train.jsonl", "--output-dir", out, "--overwrite-output-dir"],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    seconds = statistics.median(512 / row["tokens_per_second"] for row in rows if "loss" in row)
    result = b"".join(path.read_bytes() for path in sorted(out.glob("*.safetensors")))
    assert result
    return seconds, rows[-1]["summary"]["measured_peak_bytes"], hashlib.sha256(result).hexdigest()


def parts(a):
    for name, keys in TRAINED.items():
        if a.only not in name:
            continue
        print(f"\n`{name} {keys} --batch 2 --seq 256`, {a.steps} steps:\n\n| made again | peak, planned | measured | of the step that keeps everything: "
              "planned | measured | result |\n|---|---:|---:|---:|---:|---|")
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            subprocess.run([a.snug, "init", name, "--tokenizer", "demo/model", "--output-dir", folder / "model", *(["--bf16"] if "--bf16" in keys else [])],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            ways = {"nothing": []} | {part: ["--gradient-checkpointing", "--checkpoint-parts", part] for part in PARTS} | {"all": ["--gradient-checkpointing"]}
            plans = {way: Machine(a).plan([folder / "model", *keys_of(a, [*keys.split(), *more])]) for way, more in ways.items()}  # before runs correct the rates
            before = kept = trained(a, folder, keys.split())
            for way, more in ways.items():
                seconds, peak, digest = trained(a, folder, [*keys.split(), *more])
                after = trained(a, folder, keys.split())
                print(f"| {way} | {plans[way]['peak_bytes'] / 2**20:.1f} MiB | {peak / 2**20:.1f} MiB | {seconds_of(plans[way]) / seconds_of(plans['nothing']):.3f} "
                      f"| {2 * seconds / (before[0] + after[0]):.3f} | {'the same' if digest == kept[2] else 'DIFFERS'} |", flush=True)
                before = after


def main():
    a = arguments()
    if a.parts:
        return parts(a)
    machine = Machine(a)
    with tempfile.TemporaryDirectory() as cache:  # receipts of its own
        os.environ["XDG_CACHE_HOME"] = cache
        os.environ["GOMP_SPINCOUNT"] = "20000"  # as snug train sets it
        print(subprocess.run([a.snug, "probe"], capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1])
        for words in SHAPES:
            if a.only in words:
                shape(machine, words)


if __name__ == "__main__":
    main()
