#!/usr/bin/env python3
"""Prints what the demo's run achieved, from its plan and its metrics. Exit code 1 if it failed to learn or to keep its word.

    summary.py OUTPUT_DIRECTORY PLAN.json HELD_OUT.jsonl
"""

import json
import pathlib
import sys
import textwrap

LEARNT = 0.95  # share of held-out rows that must be right, to the last token


def mib(count):
    return f"{count / 2**20:.1f} MiB"


def main():
    output, plan_file, held_out_file = map(pathlib.Path, sys.argv[1:])
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "loss" in line]
    evaluations = [line for line in lines if "eval_exact" in line]
    summary = next(line["summary"] for line in lines if "summary" in line)
    plan = json.loads(plan_file.read_text())
    example = json.loads(held_out_file.read_text().splitlines()[0])
    before, after = evaluations[0]["eval_exact"], evaluations[-1]["eval_exact"]
    planned, measured, budget = summary["planned_peak_bytes"], summary["measured_peak_bytes"], plan["budget_bytes"]

    print("\nThe task, by a row that training never saw (its names are in no training text):")
    for key in ("prompt", "completion"):
        print(textwrap.fill(example[key].strip(), 76, initial_indent="    ", subsequent_indent="    "))
    print(f"\n  right to the last token   {before:.1%} before, {after:.1%} after, of {evaluations[-1]['eval_documents']} such rows")
    print(f"  training                  {summary['steps']} steps, loss {steps[0]['loss']:.2f} -> {steps[-1]['loss']:.3f}, "
          f"{summary['tokens_per_second']:.0f} tokens/s")
    print(f"  trained                   {plan['trainable_parameters']} of {plan['total_parameters']} parameters")
    print(f"  memory budget             {mib(budget)}")
    print(f"  planned peak              {mib(planned)}")
    print(f"  measured peak             {mib(measured)}   {measured / planned:.1%} of the plan")
    print(f"  adapter                   {output / 'adapter_model.safetensors'}")

    failures = []
    if after < LEARNT:
        failures.append(f"only {after:.1%} of the held-out rows are right; {LEARNT:.0%} was promised")
    if measured > planned:
        failures.append("the measured peak is above the planned one")
    if not (output / "adapter_model.safetensors").exists():
        failures.append("the adapter is missing")
    for failure in failures:
        print(f"demo failed: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
