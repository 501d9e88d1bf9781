#!/usr/bin/env python3
"""Python scripts and notebooks that train: what their trainer is given (execute.py) beside what snug reads in their text.

    python3 tests/oracle/python_scripts/compare.py [--snug SNUG] FILE|FOLDER …   # a line a script, then the share that is right

A question is left out where the execution does not answer it ("?"), or where the answer is a default that differs between a library's
versions."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

EXECUTE = pathlib.Path(__file__).resolve().parent / "execute.py"
PATIENCE = 240  # seconds
QUESTIONS = ("model", "method", "bits", "batch", "accumulation", "length", "rank", "alpha", "targets", "dtype", "half")


def planned(snug, *words):
    run = subprocess.run([snug, "plan", *words, "--gpu", "H200", "--json"], capture_output=True, text=True, timeout=300,
                         env={**os.environ, "HF_HOME": "/nonexistent"})
    try:
        return json.loads(run.stdout), run.stderr
    except ValueError:
        return None, run.stderr


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def of_snug(snug, path):
    """What snug reads. Where it has no plan, for want of the model or of its step, all but the model with another in its place."""
    plan, told = planned(snug, str(path))
    own = without = None
    if plan is None:
        without = told.strip().split("\n")[-1]
    elif "recipe" not in plan:  # parameters are known, the step is not
        own = plan["model"]["name"]
    if plan is None or own:
        plan, _ = planned(snug, str(path), "meta-llama/Llama-3.1-8B")
    if plan is None:
        return {"none": without, "told": told}
    recipe, keys = plan["recipe"], {key["ours"]: key for key in plan["file"]["keys"] if key["ours"]}
    targets = recipe["lora_target_modules"]
    found = {"method": recipe["method"].replace("qlora", "lora"),
             "bits": 4 if recipe["load_in_4bit"] == "true" else 8 if recipe["load_in_8bit"] == "true" else 16,
             "targets": targets if targets in ("all-linear", "auto") else sorted(x.strip() for x in targets.split(",")),
             "half": "bf16" if recipe["bf16"] == "true" else "fp16" if recipe["fp16"] == "true" else "no", "told": told}
    for question, key in (("batch", "per_device_train_batch_size"), ("accumulation", "gradient_accumulation_steps"), ("length", "max_length"),
                          ("rank", "lora_r"), ("alpha", "lora_alpha")):
        found[question] = number(recipe[key])
    if own:
        found["model"] = keys.get("model", {}).get("value", own)
    elif without is None:
        found |= {"model": keys.get("model", {}).get("value", plan["model"]["name"]), "dtype": recipe["precision"]["weights"]}
    else:
        found["without"] = without
    return found


# Words by which snug says that it does not know, of each question.
TOLD = {"model": ("model",), "method": ("use_peft",), "bits": ("load_in_4bit", "load_in_8bit", "quantiz"), "batch": ("per_device_train_batch_size",),
        "accumulation": ("gradient_accumulation_steps",), "length": ("max_length", "max_seq_length", "length"), "rank": ("lora_r",),
        "alpha": ("lora_alpha",), "targets": ("lora_target_modules",), "dtype": ("dtype",), "half": ("bf16", "fp16")}


def judged(question, truth, ours):
    """"right", "told" (snug says that it does not know), "wrong"; "" where the execution has no answer."""
    want = truth.get(question)
    if want in (None, "?", "") or (isinstance(want, list) and "?" in want):
        return ""
    if question == "dtype" and (want == "auto" or truth.get("bits") != 16):
        return ""
    told = [line for line in ours.get("told", "").split("\n") if "only Python knows" in line or "not known" in line or "passes over" in line]
    is_told = any(word in line for word in TOLD[question] + ("the trainer's settings",) for line in told)
    if question not in ours:
        return "told" if is_told else "none"
    got = ours[question]
    if isinstance(want, str) and question == "targets" and want != "all-linear":
        want = [want]
    if question == "dtype":
        want = str(want).removeprefix("torch.")
    return "right" if got == want else "told" if is_told else "wrong"


def compare(paths, snug):
    scripts = sorted(p for path in paths for p in ([path] if path.is_file() else path.rglob("*")) if p.suffix in (".py", ".ipynb"))
    counts = {question: {"right": 0, "told": 0, "wrong": 0, "none": 0} for question in QUESTIONS}
    reached = 0
    for path in scripts:
        run = subprocess.run([sys.executable, "-I", str(EXECUTE), str(path)], capture_output=True, text=True, timeout=PATIENCE)
        truth = json.loads(run.stdout) if run.stdout else {"none": "it was stopped"}
        if "none" in truth:
            print(f"{path}: not executed: {truth['none']}")
            continue
        reached += 1
        ours = of_snug(snug, path)
        line = []
        for question in QUESTIONS:
            verdict = judged(question, truth, ours)
            if not verdict:
                continue
            counts[question][verdict] += 1
            if verdict != "right":
                line.append(f"{question} {verdict}: {truth[question]!r} is read as {ours.get(question)!r}")
        if line:
            print(f"{path}: " + "; ".join(line) + (f" [{said}]" if (said := ours.get("without", ours.get("none"))) else ""))
    print(f"\n{len(scripts)} scripts, {reached} made a trainer\n\n| | right | told | wrong | no plan | of |\n|---|---|---|---|---|---|")
    for question, count in counts.items():
        total = sum(count.values())
        print(f"| {question} | {count['right']} | {count['told']} | {count['wrong']} | {count['none']} | {total} |"
              f" {100 * count['right'] / total:.1f} %" if total else f"| {question} | 0 | 0 | 0 | 0 | 0 |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="+", type=pathlib.Path)
    p.add_argument("--snug", default=str(pathlib.Path(__file__).resolve().parents[3] / "build" / "snug"))
    given = p.parse_args()
    compare(given.files, given.snug)


if __name__ == "__main__":
    main()
