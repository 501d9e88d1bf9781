#!/usr/bin/env python3
"""PyTorch's real peaks on a card: on a machine with an NVIDIA GPU, in an environment with torch, transformers, peft and bitsandbytes (and
liger-kernel). Runs the settings of the eager model's goldens, each in a process of its own, until time is up; writes one line a run, and goes
on where it stopped.

  measure_torch.py --out peaks.csv [--minutes 25] [--jobs 4]       peaks: small models, several at once, in an order drawn at random
  measure_torch.py --out peaks.csv --set large                      peaks of whole models of 7 B to 8 B parameters, one at a time
  measure_torch.py --out peaks.csv --set alone                      few rows, one at a time: what the driver counts above PyTorch
  measure_torch.py --out peaks.csv --set cudnn                      attention with and without cuDNN's kernels
  measure_torch.py --out times.csv --set times                      seconds of a step, of whole models, a setting changed at a time
  measure_torch.py --out times.csv --set drawn --seed 2             seconds of a step and peaks, whole models and settings drawn at random

tests/oracle/eager_goldens.py --like peaks.csv makes the null device's lines for the same rows."""
import argparse, csv, multiprocessing, os, pathlib, random, subprocess, sys, time

os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # so that asking for a card does not open it before the fork
os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", PYTHONWARNINGS="ignore", BITSANDBYTES_NOWELCOME="1")
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/oracle"))
import eager_card, eager_evaluation, eager_goldens, eager_grids  # noqa: E401, E402

KNOWN = eager_goldens.SETTINGS | eager_card.SETTINGS
COLUMNS = [*KNOWN, *eager_goldens.RESULTS, "evaluate", "device", "used", "kept", "card_bytes", "seconds", "card"]


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--set", choices=["small", "large", "alone", "cudnn", "times", "drawn"], default="small")
    p.add_argument("--minutes", type=float, default=25)
    p.add_argument("--jobs", type=int, default=4, help="processes at once, of small models")
    p.add_argument("--rows", type=int, default=0, help="at most so many")
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


def card():
    """Name and compute capability, asked of a process of its own: this one must not open the device before it forks."""
    ask = "import torch; p = torch.cuda.get_device_properties(0); print(p.name, p.major * 10 + p.minor, sep='|')"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit("measure_torch.py: there is no CUDA device here (a null device: tests/oracle/eager_goldens.py)")
    name, capability = done.stdout.strip().splitlines()[-1].split("|")
    return name, int(capability)


def times():
    """Whole models, a setting changed at a time."""
    small = eager_goldens.SETTINGS | dict(model="meta-llama/Llama-3.2-1B", batch=4, seq=1024, amp="bf16", checkpointing="none", steps=6)
    large = small | dict(model="meta-llama/Meta-Llama-3-8B", batch=2)
    changes = [dict(), dict(checkpointing="reentrant"), dict(checkpointing="non_reentrant"), dict(attention="eager"), dict(quant="nf4-double", prep="peft"),
               dict(targets="all-linear"), dict(targets="all-linear", dropout="0.05"), dict(targets="all-linear", rank=64), dict(targets="all-linear", dora=1),
               dict(loss="liger"), dict(accum=4, batch=1), dict(amp="none")]
    full = [dict(optim=o) for o in ("adamw_torch", "adamw_torch_fused", "adamw_bnb_8bit", "adafactor", "sgd")] + [dict(weights="float32"), dict(checkpointing="reentrant")]
    rows = [small | c for c in changes + [dict(quant="int8", prep="peft")]] + [small | dict(method="full") | c for c in full]
    return [large | c for c in (dict(), dict(checkpointing="reentrant"), dict(quant="nf4-double", prep="peft", checkpointing="reentrant"),
                                       dict(quant="nf4-double", prep="peft"), dict(targets="all-linear", loss="liger"), dict(method="full", checkpointing="reentrant", optim="adamw_bnb_8bit"))] + rows


# Of the drawn set, with billions of parameters; none of them in `times`.
DRAWN = [("HuggingFaceTB/SmolLM2-360M", 0.4), ("Qwen/Qwen2.5-0.5B", 0.5), ("Qwen/Qwen3-0.6B", 0.6), ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 1.1),
         ("Qwen/Qwen2.5-1.5B", 1.5), ("HuggingFaceTB/SmolLM2-1.7B", 1.7), ("Qwen/Qwen3-1.7B", 1.7), ("google/gemma-2-2b", 2.6),
         ("meta-llama/Llama-3.2-3B", 3.2), ("microsoft/Phi-3-mini-4k-instruct", 3.8), ("Qwen/Qwen3-4B", 4), ("mistralai/Mistral-7B-v0.1", 7.2), ("Qwen/Qwen2.5-7B", 7.6)]


def drawn(number, seed):
    """Rows that 80 GB hold, a model of each size in turn."""
    draw, rows = random.Random(seed), []
    while len(rows) < number:
        model, billions = DRAWN[len(rows) % len(DRAWN)]
        full = billions < 4 and draw.random() < 0.4
        tokens = 4096 if billions > 3 else 8192
        seq = draw.choice([s for s in (256, 512, 1024, 2048, 4096) if s <= tokens])
        row = dict(eager_goldens.SETTINGS, model=model, amp="bf16", steps=6, seq=seq, batch=draw.choice([b for b in (1, 2, 4, 8, 16) if b * seq <= tokens]),
                   accum=draw.choice([1, 1, 2, 4]), checkpointing=draw.choice(["none", "reentrant", "non_reentrant"]), optim=draw.choice(["adamw_torch", "adamw_torch_fused"]))
        if full:
            row.update(method="full", weights=draw.choice(["bfloat16", "float32"]) if billions < 2 else "bfloat16",
                       optim=draw.choice(["adamw_torch", "adamw_torch_fused", "adamw_bnb_8bit", "adafactor"]))
        else:
            row.update(rank=draw.choice([8, 16, 64]), dropout=draw.choice(["0", "0", "0.05"]),
                       targets="qkv_proj:o_proj" if "Phi" in model else draw.choice(["all-linear", "q_proj:v_proj", "q_proj:k_proj:v_proj:o_proj"]))
            if draw.random() < 0.4:
                row.update(quant=draw.choice(["nf4-double", "nf4"]), prep="peft")
        rows.append(row)
    return rows


def whole(row):
    return not row["layers"] and any(size in row["model"] for size in ("7b", "7B", "8B", "2.5-7B"))


def chosen(options, version, liger):
    if options.set == "drawn":
        return drawn(options.rows or 65, options.seed)
    rows = eager_grids.grid(version) + eager_grids.families(version) + eager_grids.saved() + eager_grids.sample(60, options.seed, version)
    rows += eager_evaluation.grid(eager_goldens.SETTINGS) + (eager_grids.liger(version) if liger else [])
    rows = [r for r in rows if r["attention"] != "flash"]
    small = [r for r in rows if not whole(r)]
    random.Random(options.seed).shuffle(small)
    if options.set == "large":
        return [r for r in rows if whole(r)]
    if options.set == "alone":
        return small[:12]
    if options.set == "cudnn":
        return [r | dict(cudnn="off") for r in small if r["attention"] == "sdpa"][:24]
    return times() if options.set == "times" else small


def measure(rows, at, lock, out, name, end, seconds):
    """Takes rows in turn until all are done or time is up."""
    while True:
        with at.get_lock():
            index = at.value
            at.value += 1
        if index >= len(rows) or time.time() > end:
            return
        begin = time.time()
        result = eager_goldens.forked(dict(rows[index]), None, seconds)
        with lock:
            if result is None:
                print("failed:", {k: v for k, v in rows[index].items() if v != KNOWN.get(k)}, flush=True)
                continue
            with out.open("a", newline="") as file:
                csv.DictWriter(file, COLUMNS, lineterminator="\n").writerow(KNOWN | result | {"card": name})
            print(f"{index}: {result['model']} {result['method']}: {result['allocated']} bytes ({time.time() - begin:.1f} s)", flush=True)


def main():
    options = arguments()
    name, capability = card()
    eager_goldens.ON_A_CARD = True
    _, transformers = eager_goldens.libraries()
    try:
        import liger_kernel.transformers  # noqa: F401
        liger = True
    except ImportError:
        liger = False
    key = lambda r: tuple(str(r[k]) for k in KNOWN)  # noqa: E731
    done = {key(r) for r in csv.DictReader(options.out.open())} if options.out.exists() else set()
    if not done:
        options.out.write_text(",".join(COLUMNS) + "\n")
    version = tuple(int(x) for x in transformers.__version__.split(".")[:2])
    rows = [r | dict(sm=capability) for r in chosen(options, version, liger)]
    rows = [r for i, r in enumerate(rows) if key(KNOWN | r) not in done and r not in rows[:i]]
    rows = rows[:options.rows] if options.rows else rows
    at, lock, end = multiprocessing.Value("i", 0), multiprocessing.Lock(), time.time() + options.minutes * 60
    jobs = options.jobs if options.set in ("small", "cudnn") else 1
    workers = [multiprocessing.Process(target=measure, args=(rows, at, lock, options.out, name, end, 120)) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f"{options.set}: {sum(1 for _ in options.out.open()) - 1} rows in {options.out}, {min(at.value, len(rows))} of {len(rows)} taken now")


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    main()
