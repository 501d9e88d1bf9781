#!/usr/bin/env python3
"""Published peaks against `snug plan`, nothing installed: plan_rows.py ROWS.csv [--snug SNUG] [--json FILE]

The rows of fms_rows.py (fms-acceleration, one A100-80GB, packed rows of 4,096 tokens), by the eager model through the command. What it does
not cover (fused kernels, models) is counted with its reason and left out of the rates. Prints a line a row, then the signed errors: median, 5th and 95th percentile,
the share below the truth."""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

from fms_rows import HERE, MODELS, published

PREPARATION = {"baseline-peft-bnb": "trl", "accelerated-peft-bnb": "false"}


def plan(snug, folder, version, model, method, framework, batch, amp):
    """The object "pytorch" of the plan."""
    config = folder / model.replace("/", "--")
    config.mkdir(exist_ok=True)
    (config / "config.json").write_text(json.dumps(dict(MODELS[model], torch_dtype="bfloat16")))
    words = [snug, "plan", str(config), "--gpu", "A100-SXM4-80GB", "--method", method, "--batch", str(batch), "--seq", "4096",
             "--gradient-checkpointing", "--attn-implementation", "flash_attention_2", "--json", "--runtime", "pytorch",
             "--stack", f"torch=2.4.1,transformers={version},peft=0.13.2,bitsandbytes=0.43.3", "--bf16", "true" if amp else "false"]
    if method != "full":
        words += ["--lora-r", "16", "--lora-dropout", "0.1", "--lora-target-modules", "q_proj,k_proj,v_proj,o_proj"]
    if method == "qlora":
        words += ["--prepare-model-for-kbit-training", PREPARATION.get(framework, "false")]
    if "foak" in framework or "liger" in framework:
        words += ["--use-liger-kernel"]
    done = subprocess.run(words, capture_output=True, text=True)
    return json.loads(done.stdout)["pytorch"] if done.stdout.startswith("{") else {"not_covered": done.stderr.strip()}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("rows", type=pathlib.Path)
    p.add_argument("--snug", default=str(HERE.parent.parent / "build" / "snug"))
    p.add_argument("--json", type=pathlib.Path)
    a = p.parse_args()
    rows, reasons = [], collections.Counter()
    with tempfile.TemporaryDirectory(prefix="plan-rows-") as folder:
        for name, version, model, method, framework, batch, amp, peak, steady in published(a.rows):
            answer = plan(a.snug, pathlib.Path(folder), version, model, method, framework, batch, amp)
            if "not_covered" in answer:
                reasons[answer["not_covered"]] += 1
                continue
            planned = answer["allocated_bytes"]
            rows.append(dict(row=name, published_bytes=peak, planned_bytes=planned, published_steady_bytes=steady,
                             planned_steady_bytes=answer["steady_bytes"]))
            print(f"{planned - peak:+14d} {100 * (planned - peak) / peak:+8.4f} %  {name}")
    errors = sorted(100 * (row["planned_bytes"] - row["published_bytes"]) / row["published_bytes"] for row in rows)
    at = lambda share: errors[min(len(errors) - 1, int(share * len(errors)))]
    equal = sum(row["planned_bytes"] == row["published_bytes"] for row in rows)
    print(f"{len(rows)} rows, {equal} equal to the byte; error: median {at(0.5):+.4f} %, 5th percentile {at(0.05):+.4f} %, 95th {at(0.95):+.4f} %; "
          f"below the truth {sum(e < 0 for e in errors)}; left out {sum(reasons.values())}:")
    for reason, count in reasons.most_common():
        print(f"  {count}: {reason}")
    if a.json:
        a.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
