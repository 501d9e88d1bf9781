#!/usr/bin/env python3
"""PyTorch's real peaks on a card, beside those of the null device: on a machine with an NVIDIA GPU, in an environment with torch, transformers, peft
and bitsandbytes. Runs rows of tests/golden/eager.csv, those of the installed versions first, each in a process of its own, until time is up;
writes one line a run, and goes on where it stopped. Rows that need more than the card has are left out.

  measure_torch.py --out peaks.csv [--minutes 25]

Then it tells how far the null device was off: bytes that tensors hold, bytes reserved, and the device's own count above them."""
import argparse, csv, os, pathlib, subprocess, sys, time

os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # so that asking for a card does not open it before the fork
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/oracle"))
import eager_goldens  # noqa: E402

FIGURES = ("allocated", "reserved", "steady", "phase")


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--minutes", type=float, default=25)
    p.add_argument("--rows", type=int, default=0, help="at most so many")
    return p.parse_args()


def card():
    """Name, memory and compute capability, asked of a process of its own: this one must not open the device before it forks."""
    ask = "import torch; p = torch.cuda.get_device_properties(0); print(p.name, p.total_memory, p.major * 10 + p.minor, sep='|')"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit("measure_torch.py: there is no CUDA device here (a null device: snug measure -- python3 scripts/measure_torch.py …)")
    name, memory, capability = done.stdout.strip().splitlines()[-1].split("|")
    return name, int(memory), int(capability)


def chosen(memory, capability, installed):
    """Golden rows for this card, those of the installed versions first, others after them in turn."""
    rows = list(csv.DictReader((ROOT / "tests/golden/eager.csv").open()))
    fit = [r for r in rows if int(r["reserved"]) < memory - (1 << 30) and (r["attention"] != "flash") and int(r["sm"]) <= capability]
    fit.sort(key=lambda r: (r["torch"], r["transformers"]) != installed)
    return fit


def key(row):
    return tuple(row[k] for k in eager_goldens.SETTINGS if k != "sm")


def tell(path):
    rows = list(csv.DictReader(path.open()))
    same = [r for r in rows if r["versions"] == "same"]
    print(f"{len(rows)} runs on {rows[0]['card']}, {len(same)} of them of the versions that the null device was measured with")
    for name, some in (("same versions", same), ("other versions", [r for r in rows if r["versions"] != "same"])):
        for figure in ("allocated", "reserved"):
            off = sorted(abs(int(r[figure]) / int(r["null_" + figure]) - 1) * 100 for r in some)
            if off:
                print(f"  {name}, {figure}: median {off[len(off) // 2]:.4f} %, largest {off[-1]:.3f} %, {sum(x == 0 for x in off)} of {len(off)} to the byte")


def main():
    options = arguments()
    name, memory, capability = card()
    import torch, transformers  # noqa: E401
    installed = (torch.__version__.split("+")[0], transformers.__version__)
    old = list(csv.DictReader(options.out.open())) if options.out.exists() else []
    done = {key(r) for r in old}
    columns = [*eager_goldens.SETTINGS, *eager_goldens.RESULTS, *("null_" + f for f in FIGURES), "versions", "card"]
    end, ran = time.time() + options.minutes * 60, 0
    with options.out.open("a", newline="") as out:
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        if not old:
            writer.writeheader()
        for golden in chosen(memory, capability, installed):
            if time.time() > end or (options.rows and ran >= options.rows):
                break
            if key(golden) in done:
                continue
            done.add(key(golden))
            row = {k: type(v)(golden[k]) for k, v in eager_goldens.SETTINGS.items()} | {"sm": capability}
            result = eager_goldens.forked(row, None)
            if result is None:
                continue
            versions = "same" if (golden["torch"], golden["transformers"]) == installed and int(golden["sm"]) == capability else "other"
            writer.writerow(result | {"null_" + f: golden[f] for f in FIGURES} | {"versions": versions, "card": name})
            out.flush()
            ran += 1
            print(f"{ran}: {golden['model']} {golden['method']}: {result['allocated']} bytes, null device {golden['allocated']}", flush=True)
    if options.out.stat().st_size:
        tell(options.out)


if __name__ == "__main__":
    main()
