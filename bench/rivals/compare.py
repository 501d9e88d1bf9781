#!/usr/bin/env python3
"""Runs snug and the rival in turn, checks that both did the same work, and writes the table: see bench/rivals.sh."""

import argparse
import array
import json
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "common"))
import machine  # noqa: E402

WARM_UP = 2  # steps that do not count
RANK, ALPHA, RATE, SEED = 16, 32, "2e-4", 1
TOKEN_HEADER_BYTES, LABEL_BIT = 32, 1 << 31  # of snug's tokens.bin


@dataclass
class Figures:
    """One run of one side."""

    speed: float  # tokens/s, median step
    first_step: float  # seconds from the process's start to the end of its first step
    peak: int  # VmHWM, bytes
    losses: list[float]
    norms: list[float]
    resident: int  # the system's own account of the process at its end (wait4), bytes
    of_ceiling: float | None = None
    extra: dict = field(default_factory=dict)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("snug", "python", "model", "model-name", "gsm8k", "method", "precision", "modes"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("work", "report"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    for name in ("batch", "seq", "steps", "threads", "rounds"):
        parser.add_argument(f"--{name}", type=int, required=True)
    return parser.parse_args()


def write_text(args: argparse.Namespace) -> pathlib.Path:
    """One row of text, longer than all steps: both sides cut it into full rows, in order."""
    parts, characters = [], 0
    wanted = 8 * (args.steps * args.batch + 1) * args.seq
    with open(args.gsm8k, encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            parts.append(row["question"] + "\n" + row["answer"] + "\n\n")
            characters += len(parts[-1])
            if characters >= wanted:
                break
    path = args.work / "text.jsonl"
    path.write_text(json.dumps({"text": "".join(parts)}) + "\n", encoding="utf-8")
    return path


# ---- Commands


def recipe_flags(args: argparse.Namespace) -> list[str]:
    flags = ["--method", args.method, "--bf16", str(args.precision == "bf16").lower(), "--batch", str(args.batch), "--seq",
             str(args.seq), "--threads", str(args.threads)]
    if args.method != "full":
        flags += ["--lora-r", str(RANK), "--lora-alpha", str(ALPHA), "--lora-target-modules", "all-linear"]
    return flags


def snug_command(args: argparse.Namespace, text: pathlib.Path, output: pathlib.Path) -> list[str]:
    start = ["--adapter-name-or-path", str(args.work / "adapter")] if args.method != "full" else []
    return [args.snug, "train", args.model, "--data", str(text), *recipe_flags(args), *start, "--lr", RATE, "--lr-scheduler-type",
            "constant", "--shuffle", "false", "--max-steps", str(args.steps), "--save-steps", "0", "--seed", str(SEED),
            "--output-dir", str(output), "--overwrite-output-dir"]


def rival_command(args: argparse.Namespace, text: pathlib.Path, mode: str) -> list[str]:
    start = ["--adapter", str(args.work / "adapter")] if args.method != "full" else []
    name, _, compiled = mode.partition("+")
    return [args.python, str(HERE / "train.py"), "--model", args.model, "--text", str(text), "--method", args.method, "--mode", name,
            *(["--compile"] if compiled else []), *start, "--batch", str(args.batch), "--seq", str(args.seq), "--steps",
            str(args.steps), "--threads", str(args.threads), "--lr", RATE, "--rank", str(RANK), "--alpha", str(ALPHA), "--seed",
            str(SEED), "--tokens-out", str(args.work / "rival_tokens.bin")]


# ---- Running one side


@dataclass
class Outcome:
    start: float  # by the monotonic clock, which all processes share
    lines: list[tuple[float, str]]  # of the watched stream: seconds since the start, text
    resident: int


def run(command: list[str], log: pathlib.Path, watched: str) -> Outcome:
    """Watches "stdout" or "stderr"; the other stream goes to `log`."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    with open(log, "w", encoding="utf-8") as rest:
        start = time.monotonic()
        process = subprocess.Popen(command, text=True, env=environment, **{"stdout": rest, "stderr": rest, watched: subprocess.PIPE})
        lines = [(time.monotonic() - start, line) for line in getattr(process, watched)]
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        told = "".join(line for _, line in lines[-5:]) + log.read_text(encoding="utf-8")[-2000:]
        sys.exit(f"rivals: failed: {shlex.join(command)}\n{told}")
    return Outcome(start, lines, usage.ru_maxrss * 1024)


def counted(values: list) -> list:
    return values[min(WARM_UP, len(values) - 1):]


def run_snug(args: argparse.Namespace, text: pathlib.Path) -> Figures:
    output = args.work / "out"
    outcome = run(snug_command(args, text, output), args.work / "snug.log", "stderr")
    first = next(seconds for seconds, line in outcome.lines if line.startswith("step 1/"))
    records = [json.loads(line) for line in open(output / "metrics.jsonl", encoding="utf-8")]
    steps = [record for record in records if "loss" in record]
    summary = records[-1]["summary"]
    speed = statistics.median(step["tokens_per_second"] for step in counted(steps))
    return Figures(speed, first, summary["measured_peak_bytes"], [step["loss"] for step in steps],
                   [step["grad_norm"] for step in steps], outcome.resident, extra={"planned": summary["planned_peak_bytes"]})


def run_rival(args: argparse.Namespace, text: pathlib.Path, mode: str, flops: float) -> Figures:
    outcome = run(rival_command(args, text, mode), args.work / "rival.log", "stdout")
    *steps, summary = (json.loads(line) for _, line in outcome.lines)
    seconds = [step["seconds"] for step in steps]
    # A step lies between two measurements of the ceiling.
    of_ceiling = [flops / after["seconds"] / ((before["ceiling"] + after["ceiling"]) / 2) for before, after in zip(steps, steps[1:])]
    return Figures(args.batch * args.seq / statistics.median(counted(seconds)), steps[0]["ended"] - outcome.start,
                   summary["peak_bytes"], [step["loss"] for step in steps], [step["grad_norm"] for step in steps],
                   outcome.resident, statistics.median(of_ceiling[WARM_UP - 1:] or of_ceiling) if of_ceiling else None, summary)


def step_flops(args: argparse.Namespace) -> float:
    output = subprocess.run([args.snug, "plan", args.model, *recipe_flags(args), "--max-steps", "1", "--json"], capture_output=True,
                            text=True, check=True).stdout
    return json.loads(output)["cost"]["flops"]


def snug_of_ceiling(args: argparse.Namespace) -> str:
    """From bench/step, a process of its own: one share for each ceiling; "–" if it was not built."""
    program = pathlib.Path(args.snug).parent / "bench" / "step"
    if not program.exists():
        return "–"
    output = subprocess.run([str(program), args.model, *recipe_flags(args), "--steps", "5"], capture_output=True, text=True, check=False)
    shares = re.findall(r"^([0-9.]+) % of the (\w+) ceiling.*", output.stdout, re.MULTILINE)
    return "void" if "VOID" in output.stdout else ", ".join(f"{share} % ({name})" for share, name in shares) or "–"


# ---- Did both do the same?


def same_tokens(args: argparse.Namespace) -> bool:
    rival = array.array("i", (args.work / "rival_tokens.bin").read_bytes())
    data = (args.work / "out" / "dataset" / "train" / "tokens.bin").read_bytes()[TOKEN_HEADER_BYTES:]
    snug = array.array("I", data[: 4 * len(rival)])
    return len(snug) == len(rival) and all(a == (b & ~LABEL_BIT) and b & LABEL_BIT for a, b in zip(rival, snug))


def difference(a: float, b: float) -> float:
    return abs(a - b) / max(abs(a), 1e-12)


# ---- The report


def median_of(runs: list[Figures], name: str) -> float:
    return statistics.median(getattr(run, name) for run in runs)


def spread(runs: list[Figures]) -> str:
    speeds = [run.speed for run in runs]
    return f"{min(speeds):.0f}–{max(speeds):.0f}"


def line_of(name: str, runs: list[Figures], of_ceiling: str) -> str:
    last = runs[-1]
    return (f"| {name} | {median_of(runs, 'speed'):.0f} | {spread(runs)} | {of_ceiling} | {median_of(runs, 'peak') / 2**20:.0f} | "
            f"{median_of(runs, 'resident') / 2**20:.0f} | {median_of(runs, 'first_step'):.2f} | {last.losses[0]:.4f} | "
            f"{last.losses[-1]:.4f} | {last.norms[0]:.4f} |")


def shown(args: argparse.Namespace, command: list[str]) -> str:
    """The command without this machine's paths."""
    line = shlex.join(command)
    for path, name in ((str(args.work), "WORK"), (args.python, "RIVALS_VENV/bin/python"), (args.snug, "build/snug"),
                       (str(HERE), "bench/rivals")):
        line = line.replace(path, name)
    return line


def report(args: argparse.Namespace, text: pathlib.Path, snug: dict[str, list[Figures]], rivals: dict[str, list[Figures]],
           flops: float, same: bool) -> str:
    all_snug = [run for runs in snug.values() for run in runs]
    fastest = max(rivals, key=lambda mode: median_of(rivals[mode], "speed"))
    versions = rivals[fastest][0].extra
    adapters = f"LoRA r {RANK}, alpha {ALPHA}, all linear layers" + (", on NF4 with double quantization" if args.method == "qlora" else "") if args.method != "full" else "every weight"
    lines = [f"# snug beside transformers and peft: {args.model_name}, {args.method}", "",
             f"{adapters}; {args.batch} x {args.seq} tokens a step, {args.steps} steps, AdamW, constant rate {RATE}, "
             f"{args.threads} threads, no gradient checkpointing; {flops / 1e9:.1f} GFLOP needed a step.", "",
             machine.description(args.snug),
             f"- torch {versions['torch']}, transformers {versions['transformers']}, peft {versions['peft']}, sdpa attention, fused AdamW",
             f"- every mode of the rival ran {args.rounds} x, each time right after snug", "",
             "| | tokens/s | of all runs | of own ceiling | VmHWM MiB | wait4 MiB | first step done s | loss, step 1 | "
             f"loss, step {args.steps} | gradient norm, step 1 |", "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
             line_of(f"snug, {args.precision}", all_snug, snug_of_ceiling(args))]
    for mode, runs in rivals.items():
        of_ceiling = [run.of_ceiling for run in runs if run.of_ceiling is not None]
        label = f"transformers + peft, {mode}"
        lines.append(line_of(f"**{label}**" if mode == fastest else label, runs,
                             f"{100 * statistics.median(of_ceiling):.1f} %" if of_ceiling else "–"))
    planned = all_snug[-1].extra["planned"]
    lines += ["", f"snug planned {planned / 2**20:.1f} MiB and used {100 * median_of(all_snug, 'peak') / planned:.1f} % of it. The "
              f"rival's fastest mode, {fastest}, is the one that counts. Ceilings: a product of 2048³ in a mode's own arithmetic for "
              "the rival; oneDNN's in fp32, and in bf16 where products are in bf16, for snug (bench/step). Of the rival's memory, "
              f"{versions['imported_bytes'] / 2**20:.0f} MiB are there once its libraries are imported.", "", "| snug is … | faster | smaller (VmHWM) | sooner at the first step's end |",
              "|---|---:|---:|---:|"]
    for mode, runs in rivals.items():
        pairs = list(zip(snug[mode], runs))
        speed = statistics.median(a.speed / b.speed for a, b in pairs)
        memory = statistics.median(b.peak / a.peak for a, b in pairs)
        first = statistics.median(b.first_step / a.first_step for a, b in pairs)
        label = f"**than {mode}**" if mode == fastest else f"than {mode}"
        lines.append(f"| {label} | {speed:.2f} x | {memory:.2f} x | {first:.2f} x |")
    lines += ["", "Medians of pairs. Did both do the same work?", "",
              f"- token ids and labels of all steps: {'identical' if same else 'DIFFERENT'}"]
    ours = all_snug[-1]
    for mode, runs in rivals.items():
        theirs = runs[-1]
        lines.append(f"- {mode}: loss differs by {difference(theirs.losses[0], ours.losses[0]):.1e} in step 1 and "
                     f"{difference(theirs.losses[-1], ours.losses[-1]):.1e} in step {args.steps}, gradient norm of step 1 by "
                     f"{difference(theirs.norms[0], ours.norms[0]):.1e} (relative)")
    lines += ["", "```sh", shown(args, snug_command(args, text, args.work / "out")), shown(args, rival_command(args, text, fastest)), "```", ""]
    return "\n".join(lines)


def main() -> None:
    args = arguments()
    text = write_text(args)
    if args.method != "full":  # both sides start from the same adapter
        subprocess.run([args.python, str(HERE / "train.py"), "--model", args.model, "--make-adapter", str(args.work / "adapter"),
                        "--rank", str(RANK), "--alpha", str(ALPHA), "--seed", str(SEED)], check=True, stdout=subprocess.DEVNULL)
    flops = step_flops(args)
    modes = args.modes.split()
    snug = {mode: [] for mode in modes}
    rivals = {mode: [] for mode in modes}
    for number in range(args.rounds):
        for mode in modes:
            snug[mode].append(run_snug(args, text))
            rivals[mode].append(run_rival(args, text, mode, flops))
            print(f"rivals: round {number + 1}, {mode}: snug {snug[mode][-1].speed:.0f} tokens/s, rival {rivals[mode][-1].speed:.0f}",
                  file=sys.stderr)
    same = same_tokens(args)
    page = report(args, text, snug, rivals, flops, same)
    args.report.write_text(page, encoding="utf-8")
    print(page)
    alike = all(difference(runs[-1].losses[0], snug[mode][-1].losses[0]) <= 1e-2 for mode, runs in rivals.items())
    if not same or not alike:
        sys.exit("rivals: the two sides did not do the same work, so the figures say nothing")


if __name__ == "__main__":
    main()
