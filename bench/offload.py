#!/usr/bin/env python3
"""Activations and frozen weights on disk (docs/benchmarks.md). First a shape of 1.5 B parameters by LoRA: steps that keep everything, that
recompute every block, that have activations on disk, and that keep what fits in the memory of recomputing every block, in turn (18 GB of memory). Then, with --seven-b, Llama-2-7B's shape (random weights, made here: 14 GB,
kept in --work) by QLoRA: resident, and with weights and activations on disk within `prlimit --data`; peak and traffic as the kernel counts
them. With --larger shapes of 13 B and 34 B by QLoRA and of 3 B trained whole, with --long one document as long as a sequence, each within its
plan. offload.py [--rounds N] [--only-runs] [--seven-b] [--larger NAME …] [--long TOKENS[:LAYERS[:fp32]] …] [--work DIRECTORY] [--snug SNUG] [--turns TURNS]
[--threads N]"""

import argparse
import json
import mmap
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SHAPE = "Qwen/Qwen2.5-1.5B --method lora --lora-target-modules all-linear --bf16 --batch 1 --seq 512"
RECOMPUTED = ["--gradient-checkpointing"]
AUTO = ["--gradient-checkpointing", "auto"]
ON_DISK = ["--offload-activations", "disk"]
QLORA = ("--method qlora --bf16 --lora-r 16 --lora-target-modules q_proj,k_proj,v_proj,o_proj --gradient-checkpointing --optim paged_adamw_8bit "
         "--accum 2 --seq 512 --max-steps 2 --packing true")
AWAY = ["--offload-weights", "disk", "--offload-activations", "disk"]
LARGER_QLORA = QLORA.replace("--accum 2 --seq 512", "--seq 128")
# What is made, by which words of `snug init`, and what is asked of a run of two steps.
LARGER = {"13b": ("meta-llama/Llama-2-13b-hf", ["--load-in-4bit"], LARGER_QLORA.split()),
          "34b": ("codellama/CodeLlama-34b-hf", ["--load-in-4bit"], LARGER_QLORA.split()),
          "3b": ("meta-llama/Llama-3.2-3B", [], "--method full --bf16 --optim paged_adamw_8bit --optimizer-in-bwd true --max-grad-norm 0 --gradient-checkpointing "
                 "--offload-activations disk --save-only-model true --seq 128 --max-steps 2 --packing true".split())}
LONG = ("--method lora --lora-r 16 --lora-target-modules all-linear --batch 1 --gradient-checkpointing --offload-activations disk --tiled-mlp "
        "--packing true --shuffle false --max-steps 1").split()

SMOL = ('{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 576, "intermediate_size": 1536, "num_attention_heads": 9, '
        '"num_key_value_heads": 3, "vocab_size": 49152, "rope_theta": 100000, "rms_norm_eps": 1e-05, "tie_word_embeddings": true, "bos_token_id": 0, '
        '"eos_token_id": 0}')


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--only-runs", action="store_true", help="no shape of 1.5 B")
    p.add_argument("--seven-b", action="store_true")
    p.add_argument("--larger", nargs="+", choices=LARGER, default=[], help="on disk: 7, 18 and 6.4 GB")
    p.add_argument("--long", nargs="+", default=[])
    p.add_argument("--work", default=tempfile.gettempdir())
    p.add_argument("--gsm8k", default="../shared/data/gsm8k")
    p.add_argument("--snug", default="build/snug")
    p.add_argument("--turns", default="build/bench/turns")
    p.add_argument("--threads", default="2")
    return p.parse_args()


def disk_rates(directory):
    """Bytes a second that the disk takes and gives past the page cache, 16 MiB at a time."""
    size, count = 16 << 20, 64
    page = mmap.mmap(-1, size)
    path = pathlib.Path(directory) / f"snug-disk-{os.getpid()}"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
    try:
        os.posix_fallocate(fd, 0, size * count)
        rates = []
        for move in (os.pwritev, os.pwritev, os.preadv):  # the first write finds no blocks yet
            start = time.monotonic()
            for i in range(count):
                move(fd, [page], i * size)
            rates.append(size * count / (time.monotonic() - start))
        return rates[1:]
    finally:
        os.close(fd)
        path.unlink()


def plan(a, words):
    return json.loads(subprocess.run([a.snug, "plan", *words, "--threads", a.threads, "--json"], capture_output=True, text=True, check=True).stdout)


def beside_recompute(a):
    print(f"\n`{SHAPE}`, {a.rounds} rounds, each way's step between two that recompute every block (bench/turns.cpp):\n\n"
          "| | peak, planned | s a step | of every block recomputed, median | waited for the disk |\n|---|---:|---:|---:|---:|")
    memory = ["--memory", f"{plan(a, [*SHAPE.split(), *RECOMPUTED])['peak_bytes']}B"]
    ways = {"every block recomputed": RECOMPUTED, "everything kept": [], "activations on disk": ON_DISK, "`auto` in the memory of every block recomputed": AUTO + memory,
            "`auto` with disk in the same": AUTO + ON_DISK + memory}
    words = [" ".join([*SHAPE.split(), *more, "--threads", a.threads]) for more in ways.values()]
    done = subprocess.run([a.turns, str(a.rounds), *words], stdout=subprocess.PIPE, text=True, check=True)
    for name, line in zip(ways, done.stdout.splitlines()):
        peak, seconds, ratio, waited = map(float, line.split())
        print(f"| {name} | {peak / 2**30:.2f} GiB | {seconds:.2f} | {ratio:.3f} | {100 * waited:.1f} % |", flush=True)


def train(a, model, output, words, limit, data=None):
    """The run's summary, its seconds, bytes read from the disk as the kernel counts them."""
    def limited():
        if limit:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    shutil.rmtree(output, ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock
    subprocess.run([a.snug, "train", str(model), *words, "--threads", a.threads, "--data", data or f"{a.gsm8k}/train.jsonl", "--output-dir", str(output)],
                   stdout=sys.stderr, check=True, preexec_fn=limited)
    read = (resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock - before) * 512
    rows = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    return rows, read


def made(a, folder, name, *words):
    """A model of this shape in --work, with random weights; made where it is not there yet."""
    model = pathlib.Path(a.work) / folder
    if not model.exists():  # init leaves all of it or nothing
        subprocess.run([a.snug, "init", name, "--bf16", *words, "--output-dir", str(model), "--tokenizer", "demo/model"], check=True, stdout=sys.stderr)
    return model


def seven_b(a):
    work = pathlib.Path(a.work)
    model = made(a, "llama-2-7b-shape", "meta-llama/Llama-2-7b-hf")
    print(f"\nLlama-2-7B's shape, `{QLORA}`:\n\n| | peak, planned | measured (VmHWM) | tokens/s | read by pages: planned, told | by the kernel, loading included | waited |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    speeds, losses = [], []
    for name, more in (("resident", []), ("weights and activations on disk", AWAY)):
        words = [*QLORA.split(), *more]
        planned = plan(a, [str(model), *words])
        limit = planned["peak_bytes"] + (16 << 20)
        rows, read = train(a, model, work / "out-7b", words, limit)
        summary = rows[-1]["summary"]
        losses.append([row["loss"] for row in rows if "loss" in row])
        speeds.append(summary["tokens_per_second"])
        print(f"| {name} | {planned['peak_bytes'] / 1e9:.3f} GB | {summary['measured_peak_bytes'] / 1e9:.3f} GB | {summary['tokens_per_second']:.1f} "
              f"| {2 * planned['homes']['fetched_a_step'] / 1e9:.3f}, {summary['fetched_bytes'] / 1e9:.3f} GB | {read / 1e9:.2f} GB | {summary['waited_seconds']:.1f} s |",
              flush=True)
    print(f"\nEach within `prlimit --data` of its plan and 16 MiB. A step takes {speeds[0] / speeds[1]:.3f} times as long as resident; losses "
          f"{'equal' if losses[0] == losses[1] else 'DIFFERENT'}: {', '.join(map(str, losses[1]))}.")
    shutil.rmtree(work / "out-7b", ignore_errors=True)


def within_plan(a, name, model, words, data=None):
    """A row: a run within `prlimit --data` of its plan and 16 MiB."""
    planned = plan(a, [str(model), *words])
    rows, _ = train(a, model, pathlib.Path(a.work) / "out-within", words, planned["peak_bytes"] + (16 << 20), data)
    summary = rows[-1]["summary"]
    measured, steps = summary["measured_peak_bytes"], [row for row in rows if "loss" in row]
    seconds = int(words[words.index("--seq") + 1]) / statistics.median(row["tokens_per_second"] for row in steps)
    told = planned["cost"]["step_seconds"]
    print(f"| {name} | {planned['peak_bytes'] / 1e9:.3f} GB | {measured / 1e9:.3f} GB, {100 * measured / planned['peak_bytes']:.2f} % | {told:.1f} s | {seconds:.1f} s "
          f"| {summary['fetched_bytes'] / 1e9:.2f}, {summary['sent_bytes'] / 1e9:.2f} GB | {summary['waited_seconds']:.1f} s |", flush=True)
    shutil.rmtree(pathlib.Path(a.work) / "out-within", ignore_errors=True)


def title():
    print("\n| | peak, planned | measured (VmHWM) | a step, planned | measured | fetched, sent in all | waited |\n|---|---:|---:|---:|---:|---:|---:|", flush=True)


def larger(a):
    title()
    for key in a.larger:
        name, kind, words = LARGER[key]
        within_plan(a, f"`{name}` `{' '.join(words)}`", made(a, f"shape-{key}", name, *kind), words)


def long_model(a, layers):
    """SmolLM2-135M's shape, of so many layers, with positions for the longest sequence."""
    shape = pathlib.Path(a.work) / f"long-{layers}.json"
    config = json.loads(SMOL) | {"max_position_embeddings": 131072, "num_hidden_layers": layers}
    shape.write_text(json.dumps(config))
    return shape, made(a, f"shape-long-{layers}", str(shape))


def long(a):
    """One document, of GSM8K's rows one after the other."""
    document = pathlib.Path(a.work) / "one-document.jsonl"
    lines = pathlib.Path(f"{a.gsm8k}/train.jsonl").read_text().splitlines()
    document.write_text(json.dumps({"text": "\n".join(" ".join(json.loads(line).values()) for line in lines)}) + "\n")
    title()
    for wanted in a.long:
        given = wanted.split(":")
        tokens, layers, dtype = given + ["30", "bf16"][len(given) - 1:]
        _, model = long_model(a, int(layers))
        words = [*LONG, "--seq", tokens, *(["--bf16"] if dtype == "bf16" else [])]
        within_plan(a, f"SmolLM2-135M's shape, {layers} layers `{' '.join(words)}`", model, words, str(document))
    print("\nAll 30 layers, planned:\n\n| tokens | in one piece | a step | tiled | a step | tiled and on disk | a step |\n|---:|---:|---:|---:|---:|---:|---:|")
    shape, _ = long_model(a, 30)
    bare = [word for word in LONG if word not in ("--tiled-mlp", "--offload-activations", "disk")]
    for tokens in (4096, 8192, 16384, 32768, 65536, 131072):
        cells = []
        for more in ([], ["--tiled-mlp"], ["--tiled-mlp", "--offload-activations", "disk"]):
            planned = plan(a, [str(shape), *bare, "--bf16", "--seq", str(tokens), *more])
            cells.append(f"{planned['peak_bytes'] / 1e9:.3f} GB | {planned['cost']['step_seconds']:,.0f} s")
        print(f"| {tokens:,} | {' | '.join(cells)} |", flush=True)


def main():
    a = arguments()
    os.environ["GOMP_SPINCOUNT"] = "20000"  # as snug train sets it
    written, read = disk_rates(a.work)
    if a.larger or a.long:  # what plan says of time is this machine's
        os.environ["XDG_CACHE_HOME"] = str(pathlib.Path(a.work) / "cache")
        subprocess.run([a.snug, "probe"], check=True, stdout=sys.stderr)
    print(f"The disk takes {written / 1e9:.2f} GB/s and gives {read / 1e9:.2f} GB/s, past the page cache, 16 MiB at a time.")
    if not a.only_runs:
        beside_recompute(a)
    if a.seven_b:
        seven_b(a)
    if a.larger:
        larger(a)
    if a.long:
        long(a)


if __name__ == "__main__":
    main()
