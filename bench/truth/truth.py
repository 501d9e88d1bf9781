#!/usr/bin/env python3
"""Published peaks against `snug plan`: truth.py ROWS.csv [--snug SNUG] [--json FILE] [--docs PAGE] [--picture FILE.svg] [--only TEXT] [-v]

Each row of measured_peaks.csv that states batch and length becomes a recipe (plain files in a folder of their own; sources.py) and is asked of
`snug plan RECIPE CONFIG --runtime pytorch --json`. Prints, and writes into PAGE between its marks, the signed errors by tier, source and
method, with each source left out in turn; how many rows of tier C lie in the interval that was told; rows that ran out of memory; and what
was left out, by reason.."""

import argparse
import concurrent.futures
import concurrent.futures
import json
import os
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import picture
import report
import rows
import sources

HERE = pathlib.Path(__file__).resolve().parent


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("rows", type=pathlib.Path)
    p.add_argument("--snug", default=str(HERE.parent.parent / "build" / "snug"))
    p.add_argument("--json", type=pathlib.Path)
    p.add_argument("--docs", type=pathlib.Path)
    p.add_argument("--picture", type=pathlib.Path)
    p.add_argument("--only", default="", help="rows whose description holds this")
    p.add_argument("-v", "--verbose", action="store_true", help="a line a row")
    return p.parse_args()


def reason(text):
    """Why there is no answer, without what differs from row to row."""
    text = re.sub(r"^snug: |/\S+/config\.json: |the model of PyTorch's memory does not cover | yet\b| \(supported: .*", "", text)
    return "several GPUs" if "flag --gpus" in text else text


def plan(snug, question, ask):
    """What the plan says under "pytorch", or {"not_covered": why}."""
    with tempfile.TemporaryDirectory(prefix="truth-") as folder:
        config, recipe = pathlib.Path(folder, "model", "config.json"), pathlib.Path(folder, "recipe.yaml")
        config.parent.mkdir()
        config.write_text(json.dumps(ask.config))
        # JSON is YAML: what a key holds is written as such
        recipe.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in dict(ask.keys, model=str(config)).items()))
        words = [snug, "plan", str(recipe), "--runtime", "pytorch", "--json", *ask.flags]
        words += ["--gpu", question.card] if question.card else []
        words += ["--stack", question.stack] if question.stack else []
        done = subprocess.run(words, capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        return {"not_covered": (done.stderr.strip().splitlines() or ["no answer"])[0]}
    return json.loads(done.stdout)["pytorch"]


def figure(answer, metric):
    """The bytes that were measured, as the plan tells them; where the row does not say what, those taken from the device."""
    if metric == "device":
        return (answer["device_bytes"]["low"] + answer["device_bytes"]["high"]) / 2
    return answer["allocated_bytes"] if metric == "allocated" else answer["reserved_bytes"]


def interval(answers, metric):
    """(low, high) that the answers tell of what was measured: allocated is no more than reserved; of what is not said, anything from allocated to
    the device's most."""
    low = min(a["device_bytes"]["low"] if metric == "device" else a["allocated_bytes"] for a in answers)
    high = max(a["reserved_bytes"] if metric in ("allocated", "reserved") else a["device_bytes"]["high"] for a in answers)
    return low, high


def judge(snug, question):
    """The question with its answer: a plain dictionary, as --json keeps it."""
    row = dict(line=question.line, source=question.source, trainer=question.trainer, model=question.model, method=question.method,
               gpus=question.gpus, tier=question.tier, metric=question.metric, least_bytes=question.least, most_bytes=question.most,
               out_of_memory=question.out_of_memory, left_out=question.left_out)
    if question.left_out:
        return row
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(lambda ask: plan(snug, question, ask), question.asks))
    refused = next((a["not_covered"] for a in answers if "not_covered" in a), "" if answers else "nothing to ask")
    if refused:
        row["left_out"] = reason(refused)
        return row
    row["fits"] = any(a["fits"] for a in answers)
    row["planned_bytes"] = round(sum(figure(a, question.metric) for a in answers) / len(answers))
    row["low_bytes"], row["high_bytes"] = interval(answers, question.metric)
    if question.gb_may_be_gib:  # which prints a smaller number
        row["low_bytes"] = round(row["low_bytes"] * 10**9 / 2**30)
    if not question.out_of_memory and question.most > 0:
        nearest = min(max(row["planned_bytes"], question.least), question.most)  # what the printed figure can stand for
        row["error"] = 100 * (row["planned_bytes"] - nearest) / nearest
    return row


def main():
    a = arguments()
    judged, silent, asked = [], 0, []
    for line, row in rows.read(a.rows):
        question = sources.question(line, row)
        if question is None:
            silent += 1
        elif a.only in f"{question.source} {question.trainer} {question.model} {question.method} {question.tier} {row['other']}":
            asked.append((line, row, question))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (line, row, question), got in zip(asked, pool.map(lambda each: judge(a.snug, each[2]), asked)):
            judged.append(got)
            if a.verbose:
                told = got["left_out"] or ("ran out, " + ("fits" if got["fits"] else "does not fit") if got["out_of_memory"] else
                                           f"{got['error']:+9.3f} %  {got['low_bytes'] / 2**30:6.2f} .. {got['high_bytes'] / 2**30:6.2f} of "
                                           f"{question.bytes / 2**30:6.2f} GiB {got['metric']}")
                print(f"{line:4} {question.tier} {told:58} {question.trainer} {question.model} {question.method} x{question.gpus} {row['batch']} "
                      f"{row['seq'][:12]} {row['other'][:60]}", flush=True)
    text = report.text(judged, silent)
    print(text)
    if a.json:
        a.json.write_text(json.dumps(judged, indent=1) + "\n")
    if a.docs:
        report.write(a.docs, text)
    if a.picture:
        a.picture.write_text(picture.svg(judged))
    return 0


if __name__ == "__main__":
    sys.exit(main())
