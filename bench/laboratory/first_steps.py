#!/usr/bin/env python3
"""The first step of cases as a large card saw it, for the test of the eager model: first_steps.py DIR… > tests/golden/eager_first_steps.jsonl

A line a case of a script that trains one model on rows of one length: its configuration, settings, versions, card, and the most that tensors
held in forward, backward and the optimizer's step."""

import json
import pathlib
import sys

import recipes

KEPT = ("micro_batch", "accumulation", "length", "dtype", "amp", "attention", "gradient_checkpointing", "lora", "quantize_4bit", "optimizer", "max_grad_norm",
        "foreach", "fused_loss")
PHASES = ("forward", "backward", "optimizer")


def first_step(rows):
    """Of the rows before the first optimizer step is over; none if there is no such step."""
    peaks = {}
    for row in rows:
        if row["step"] == 0 and row["phase"] in PHASES:
            peaks[row["phase"]] = max(peaks.get(row["phase"], 0), row["peak"])
        if row["phase"] == "optimizer":
            return peaks
    return None


def line_of(folder):
    case = json.loads((folder / "case.json").read_text())
    settings, versions = case["settings"], case["versions"]
    if case["program"] not in ("plain_loop", "trainer", "sft"):
        return None
    peaks = first_step(case["rows"])
    if peaks is None or settings.get("fused_loss") or settings.get("foreach") is not None:
        return None
    if case["program"] != "plain_loop":
        settings["micro_batch"] = min(settings["micro_batch"], recipes.ROWS)
    return {"program": case["program"], "config": json.loads((folder / "model" / "config.json").read_text()),
            "settings": {key: settings[key] for key in KEPT if key in settings}, "versions": {name: version.split("+")[0] for name, version in versions.items()},
            "gpu": case["machine"]["gpu"], "peaks": peaks}


def main():
    for top in sys.argv[1:]:
        for path in sorted(pathlib.Path(top).rglob("case.json")):
            line = line_of(path.parent)
            if line:
                print(json.dumps(line, separators=(",", ":")))


if __name__ == "__main__":
    sys.exit(main())
