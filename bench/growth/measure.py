#!/usr/bin/env python3
"""Measures every point of bench/growth.sh with `snug train`, compares it with `snug plan`, and prints the tables."""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "common"))
import machine  # noqa: E402

WARM_UP = 2  # steps that do not count
FEWEST, MOST = 3, 40  # steps that count
EXPECTED_FLOPS = 60e9  # a second: decides how many steps fit in the time, nothing else
BASE = {"seq": 512, "layers": 4, "rank": 8}
AXES = {
    "seq": ("sequence length", "T", [256, 512, 1024, 2048, 4096, 8192]),
    "layers": ("layers", "L", [4, 8, 16, 32, 64]),
    "rank": ("LoRA rank", "R", [4, 8, 16, 32, 64, 128, 256]),
}
SHAPE = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 256,
         "intermediate_size": 1024, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 4096,
         "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 10000, "tie_word_embeddings": True,
         "eos_token_id": 0, "initializer_range": 0.02}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--snug", required=True)
    for name in ("work", "rows", "figures"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    parser.add_argument("--picture", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args()


def run(*command) -> str:
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"growth: failed: {' '.join(map(str, command))}\n{result.stderr[-2000:]}")
    return result.stdout


def make_model(args: argparse.Namespace, layers: int) -> pathlib.Path:
    directory = args.work / f"model-{layers}"
    if not directory.exists():
        config = args.work / f"shape-{layers}" / "config.json"
        config.parent.mkdir()
        config.write_text(json.dumps(SHAPE | {"num_hidden_layers": layers}), encoding="utf-8")
        run(args.snug, "init", config, "--output-dir", directory, "--tokenizer", "demo/model")
    return directory


def make_text(args: argparse.Namespace) -> pathlib.Path:
    """One row of text, which is cut into full rows of any length."""
    rows = [json.loads(line) for line in args.rows.read_text(encoding="utf-8").splitlines()]
    path = args.work / "text.jsonl"
    path.write_text(json.dumps({"text": "".join(row["prompt"] + row["completion"] + "\n" for row in rows)}) + "\n", encoding="utf-8")
    return path


def measure(args: argparse.Namespace, text: pathlib.Path, point: dict) -> dict:
    model = make_model(args, point["layers"])
    recipe = ["--method", "lora", "--lora-r", point["rank"], "--lora-alpha", point["rank"], "--lora-target-modules", "all-linear",
              "--batch", 1, "--seq", point["seq"], "--threads", args.threads]
    flops = json.loads(run(args.snug, "plan", model, *recipe, "--max-steps", 1, "--json"))["cost"]["flops"]
    steps = WARM_UP + max(FEWEST, min(MOST, round(args.seconds * EXPECTED_FLOPS / flops)))
    output = args.work / "out"
    run(args.snug, "train", model, "--data", text, *recipe, "--lr-scheduler-type", "constant", "--shuffle", "false", "--max-steps",
        steps, "--save-steps", 0, "--output-dir", output, "--overwrite-output-dir")
    records = [json.loads(line) for line in (output / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    speeds = [record["tokens_per_second"] for record in records if "loss" in record][WARM_UP:]
    summary = records[-1]["summary"]
    return {"planned": summary["planned_peak_bytes"], "measured": summary["measured_peak_bytes"], "flops": flops,
            "seconds": statistics.median(point["seq"] / speed for speed in speeds), "fastest": point["seq"] / max(speeds)}


# ---- Fits


def exponent(xs: list, ys: list) -> float:
    """The slope of log y over log x, by least squares."""
    x, y = [math.log(v) for v in xs], [math.log(v) for v in ys]
    mean_x, mean_y = statistics.fmean(x), statistics.fmean(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)


def fits(axis: dict) -> dict:
    """For each figure: the exponent over all points, and over the last doubling."""
    return {name: (exponent(axis["x"], axis[name]), exponent(axis["x"][-2:], axis[name][-2:]))
            for name in ("planned", "measured", "flops", "seconds")}


def seconds_per_flop(axis: dict) -> list[float]:
    return [seconds / flops for seconds, flops in zip(axis["seconds"], axis["flops"])]


# ---- Tables


def print_axis(axis: dict) -> None:
    print(f"## {axis['title'][0].upper()}{axis['title'][1:]} {axis['letter']}\n")
    print(f"| {axis['letter']} | planned MiB | measured MiB | measured / planned | GFLOP a step | ms a step | fastest | GFLOP/s | ms / GFLOP |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for i, x in enumerate(axis["x"]):
        planned, measured, flops, seconds = (axis[name][i] for name in ("planned", "measured", "flops", "seconds"))
        print(f"| {x} | {planned / 2**20:.1f} | {measured / 2**20:.1f} | {measured / planned:.1%} | {flops / 1e9:.2f} | "
              f"{seconds * 1e3:.1f} | {axis['fastest'][i] * 1e3:.1f} | {flops / seconds / 1e9:.0f} | {seconds / flops * 1e12:.2f} |")
    print()


def print_fits(axes: list[dict]) -> None:
    print("## Exponents\n\nOf a power law through all points, and in brackets through the last two.\n")
    print("| | memory, planned | memory, measured | GFLOP, planned | time, measured | ms / GFLOP, most : least | largest measured / planned |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for axis in axes:
        fit = axis["fits"]
        shown = " | ".join(f"{fit[name][0]:.2f} ({fit[name][1]:.2f})" for name in ("planned", "measured", "flops", "seconds"))
        rates = seconds_per_flop(axis)
        largest = max(measured / planned for measured, planned in zip(axis["measured"], axis["planned"]))
        print(f"| {axis['letter']} | {shown} | {max(rates) / min(rates):.2f} | {largest:.1%} |")
    within = all(m <= p for axis in axes for m, p in zip(axis["measured"], axis["planned"]))
    print(f"\nMeasured memory is {'never above' if within else 'ABOVE'} the plan{'' if within else ' at some point'}.")


def main() -> None:
    args = arguments()
    text = make_text(args)
    axes = []
    for name, (title, letter, values) in AXES.items():
        values = values[:3] if args.quick else values
        points = [measure(args, text, BASE | {name: value}) for value in values]
        axis = {"title": title, "letter": letter, "x": values} | {key: [point[key] for point in points] for key in points[0]}
        axis["fits"] = fits(axis)
        axes.append(axis)
        print(f"growth: {title} done", file=sys.stderr)
    args.figures.write_text(json.dumps(axes), encoding="utf-8")
    print("# How cost grows\n")
    print(f"fp32 LoRA on all linear layers; hidden {SHAPE['hidden_size']}, {SHAPE['num_attention_heads']} heads, FFN "
          f"{SHAPE['intermediate_size']}, vocabulary {SHAPE['vocab_size']}; where they are not varied: T {BASE['seq']}, L {BASE['layers']}, "
          f"R {BASE['rank']}, one sequence a step, {args.threads} threads. Time: median of {FEWEST} to {MOST} steps after {WARM_UP}. "
          "Memory: VmHWM. GFLOP: the plan's needed work.\n")
    print(machine.description(args.snug))
    print(f"\n![Memory and time over T, L and R]({args.picture})\n")
    for axis in axes:
        print_axis(axis)
    print_fits(axes)


if __name__ == "__main__":
    main()
