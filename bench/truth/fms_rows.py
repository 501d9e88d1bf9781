#!/usr/bin/env python3
"""fms-acceleration's published peaks against `snug measure`: fms_rows.py ROWS.csv --python VERSION=PYTHON … --fms CHECKOUT [--snug SNUG] [--only TEXT]

ROWS.csv: published rows as of scripts/benchmarks/refs of fms-acceleration, one a row with `other` holding "torch peak alloc N" (bytes).
PYTHON: an interpreter with the stack that the rows name: torch 2.4.1, peft 0.13.2, bitsandbytes 0.43.3, and transformers VERSION (4.48.1 and
4.45.2 are asked for; a row whose version is not given is left out and counted). Rows on one GPU, of one length, without GPTQ are run; models whose experts are chosen by values and santacoder are left out. Prints a line a row and
how many are equal to the byte; --json FILE keeps them."""

import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
GRANITE = "4.45.2"  # refs/requirements_granite.txt
# Vocabularies as the benchmark padded them with the tokens that it added.
MODELS = {
    "mistralai/Mistral-7B-v0.1": dict(
        model_type="mistral", architectures=["MistralForCausalLM"], hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
        num_attention_heads=32, num_key_value_heads=8, vocab_size=32001, max_position_embeddings=32768, sliding_window=4096,
        rope_theta=10000.0, rms_norm_eps=1e-5, tie_word_embeddings=False, transformers_version="4.34.0.dev0"),
    "meta-llama/Meta-Llama-3-8B": dict(
        model_type="llama", architectures=["LlamaForCausalLM"], hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
        num_attention_heads=32, num_key_value_heads=8, vocab_size=128258, max_position_embeddings=8192, rope_theta=500000.0,
        rms_norm_eps=1e-5, tie_word_embeddings=False, transformers_version="4.40.0.dev0"),
    "ibm/PowerLM-3b": dict(
        model_type="granite", architectures=["GraniteForCausalLM"], hidden_size=2304, intermediate_size=9216, num_hidden_layers=40,
        num_attention_heads=36, num_key_value_heads=36, vocab_size=49152, max_position_embeddings=4096, rope_theta=10000.0,
        rms_norm_eps=1e-5, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, transformers_version="4.45.0.dev0"),
}


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("rows", type=pathlib.Path)
    p.add_argument("--python", action="append", required=True, metavar="VERSION=PYTHON")
    p.add_argument("--fms", required=True, help="a checkout of foundation-model-stack/fms-acceleration")
    p.add_argument("--snug", default=str(HERE.parent.parent / "build" / "snug"))
    p.add_argument("--only", default="", help="rows whose description holds this")
    p.add_argument("--json", type=pathlib.Path)
    return p.parse_args()


def published(path):
    """(description, transformers, model, method, framework, batch, AMP, peak bytes, steady bytes) of each row that can be run."""
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            peak = re.search(r"torch peak alloc ([\d.]+)", row["other"])
            steady = re.search(r"torch steady alloc ([\d.]+)", row["other"])
            if "fms-acceleration" not in row["source"] or not peak or not row["gpu"].startswith("1 x") or "GPTQ" in row["method"]:
                continue
            if row["model"] not in MODELS or "packed" not in row["seq"]:
                continue
            framework = re.search(r"framework_config=([\w-]+)", row["other"])[1]
            method = {"full": "full", "LoRA": "lora"}.get(row["method"], "qlora")
            batch = int(row["batch"].split()[0])
            where = re.search(r"refs\w*/(\S+ line \d+)", row["source"])[1]
            version = re.search(r"transformers ([\d.]+)", row["framework"])
            yield (f"{where}: {row['model']} {method} {framework} batch {batch}", version[1] if version else GRANITE, row["model"], method, framework, batch,
                   "AMP)" in row["precision"], int(float(peak[1])), int(float(steady[1])))


def run(a, folder, python, model, method, framework, batch, amp):
    config = folder / model.replace("/", "--")
    config.mkdir(exist_ok=True)
    (config / "config.json").write_text(json.dumps(dict(MODELS[model], torch_dtype="bfloat16", bos_token_id=1, eos_token_id=2)))
    out = folder / "result.json"
    command = [a.snug, "measure", "--gpu", "A100-SXM4-80GB", "--json", str(out), "--", python, str(HERE / "fms_train.py"), "--model",
               str(config), "--method", method, "--framework", framework, "--batch", str(batch), "--fms", a.fms, "--output",
               str(folder / "out"), *(["--amp"] if amp else [])]
    done = subprocess.run(command, capture_output=True, text=True)
    if not out.exists():
        return None, done.stderr[-400:]
    result = json.loads(out.read_text())["measured"]
    out.unlink()
    return result, done.stderr[-400:] if done.returncode else ""


def main():
    a = arguments()
    rows, exact, left_out = [], 0, 0
    pythons = dict(one.split("=", 1) for one in a.python)
    with tempfile.TemporaryDirectory(prefix="fms-rows-") as folder:
        for name, version, model, method, framework, batch, amp, peak, steady in published(a.rows):
            if a.only not in name:
                continue
            if version not in pythons:
                left_out += 1
                continue
            began = time.time()
            measured, error = run(a, pathlib.Path(folder), pythons[version], model, method, framework, batch, amp)
            got = measured["allocated_bytes"] if measured else 0
            exact += got == peak
            rows.append(dict(row=name, published_bytes=peak, measured_bytes=got, published_steady_bytes=steady,
                             measured_steady_bytes=measured and measured["steady_bytes"], reserved_bytes=measured and measured["reserved_bytes"],
                             phase=measured and measured["phase"], seconds=round(time.time() - began, 1),
                             host_peak_bytes=measured and measured["host_peak_bytes"]))
            difference = got - peak
            print(f"{'equal' if difference == 0 else f'{difference:+d}':>14} {100 * difference / peak:+8.4f} %  {name}  {rows[-1]['seconds']} s"
                  f"{'  ' + error if error else ''}", flush=True)
    if a.json:
        a.json.write_text(json.dumps(rows, indent=1) + "\n")
    worst = max((abs(row["measured_bytes"] - row["published_bytes"]) / row["published_bytes"] for row in rows), default=0)
    steady = sum(row["measured_steady_bytes"] == row["published_steady_bytes"] for row in rows)
    print(f"{exact} of {len(rows)} peaks equal to the byte, worst {100 * worst:.4f} %; {steady} steady figures equal; {left_out} left out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
