#!/usr/bin/env python3
"""Does what `snug fit` and `snug explain` advise really fit? advice.py --python PYTHON [--recipes DIR] [--snug SNUG] [--stack NAMES] [--only TEXT] [--json FILE]

Each piece of advice is a question: one of our recipes (bench/truth/recipes), one of DIR (public recipes of other trainers; what the eager
model does not cover is counted with its reason), or a model alone, for a card; and one of ours that ran out there. The diff is applied with patch(1), the changed file is
planned again (it must promise the very bytes that fit promised), and then trained for two steps with the real libraries of PYTHON on a
null device that gives what the card has beside the largest context (`snug measure --gpu CARD`). Prints a line a piece: whether it ran
out, planned and measured bytes reserved. FILE gets a JSON line a piece; those that it has already are not run again. Exit code 1 if one
did run out, or fewer than --least pieces were tried."""

import argparse
import collections
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
# Model and card: tight ones, so that advice has something to do.
PAIRS = [("meta-llama/Llama-3.1-8B", "RTX-4090"), ("meta-llama/Llama-3.1-8B", "A100-40GB"), ("mistralai/Mistral-7B-v0.1", "RTX-4090"),
         ("mistralai/Mistral-7B-v0.1", "A100"), ("Qwen/Qwen2.5-7B", "RTX-3090"), ("Qwen/Qwen3-4B", "RTX-3060"), ("Qwen/Qwen2.5-1.5B", "RTX-3060"),
         ("google/gemma-2-2b", "RTX-3060"), ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "RTX-3060"), ("meta-llama/Llama-3.2-3B", "RTX-4090")]
METHODS = ["lora", "qlora", "full"]
FAILURE = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of {0:.2f} GiB of which 0.50 GiB is free. "
           "Including non-PyTorch memory, this process has {1:.2f} GiB memory in use. Of the allocated memory {2:.2f} GiB is allocated by PyTorch, and "
           "512.00 MiB is reserved by PyTorch but unallocated.\n")


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--python", required=True, help="an interpreter with torch (CUDA build), transformers, peft, bitsandbytes")
    p.add_argument("--recipes", type=pathlib.Path, help="a folder of public recipes")
    p.add_argument("--snug", default=str(HERE.parent.parent / "build" / "snug"))
    p.add_argument("--stack", default="", help="as of snug's --stack, for an interpreter with other versions than today's")
    p.add_argument("--only", default="", help="questions whose name holds this")
    p.add_argument("--least", type=int, default=60)
    p.add_argument("--most", type=int, default=1000)
    p.add_argument("--json", type=pathlib.Path)
    return p.parse_args()


def questions(a):
    """(name, recipe file or none, model, card, flags); no flags: of a run that ran out."""
    files = sorted(f for f in (HERE / "recipes").iterdir())
    if a.recipes and a.recipes.is_dir():
        files += sorted(f for f in a.recipes.rglob("*") if f.suffix in (".yaml", ".yml", ".json", ".sh"))
    else:
        print(f"public recipes: skipped, {a.recipes or 'no --recipes'} is not there")
    for number, file in enumerate(files):
        own = file.parent.name == "recipes"
        for model, card in PAIRS if own else [PAIRS[number % len(PAIRS)], PAIRS[(number + 3) % len(PAIRS)]]:
            yield f"{file.parent.name}/{file.name} {model} {card}", file, model, card, []
    for number, file in enumerate(f for f in files if f.parent.name == "recipes"):
        for model, card in PAIRS[number % 3::3]:
            yield f"explain {file.name} {model} {card}", file, model, card, None
    for model, card in PAIRS:
        for method in METHODS:
            yield f"{method} {model} {card}", None, model, card, ["--method", method]


def snug(a, command, *words):
    """(exit code, the object printed or none, the last line of stderr)."""
    stack = ["--stack", a.stack] if a.stack else []
    done = subprocess.run([a.snug, command, *map(str, words), *stack, "--json"], capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1:] or [""]
    return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else None, last[0]


def explained(a, folder, file, model, card):
    """What explain says of a recipe that ran out on the card: its object "recipe", or the reason."""
    usable = snug(a, "plan", model, "--gpu", card)[1]["device"]["memory_bytes"] / 2**30
    log = folder / "crash.log"
    log.write_text(FAILURE.format(usable, usable - 0.5, usable - 1.5))
    _, answer, error = snug(a, "explain", log, file, model, "--gpu", card)
    if answer is None:
        return error
    recipe = answer["recipe"]
    if recipe["engine"] != "pytorch":
        return "explain: not covered"
    return recipe if recipe["enough"] else "explain: nothing to change" if recipe["enough"] is None else "explain: nothing is enough"


def planned_after(a, folder, file, model, card, diff):
    """What plan says of PyTorch for the file with the diff applied."""
    changed = folder / file.name
    shutil.copy(file, changed)
    if diff:
        subprocess.run(["patch", "-s", changed], input=diff, text=True, check=True)
    return snug(a, "plan", changed, model, "--gpu", card)[1]["pytorch"]


def advised(a, folder, file, model, card, flags):
    """(bytes of the device that were promised, what plan says of the recipe that the advice makes), or (none, the reason)."""
    if flags is None:
        recipe = explained(a, folder, file, model, card)
        if isinstance(recipe, str):
            return None, recipe
        return recipe["peak_bytes"], planned_after(a, folder, file, model, card, recipe["diff"])
    words = [*([file] if file else []), model, "--gpu", card, *flags]
    code, answer, error = snug(a, "fit", *words)
    pytorch = (answer or {}).get("pytorch")
    if not pytorch or "not_covered" in pytorch:
        return None, error.split("not known: ")[-1].split("; what follows")[0]
    if code != 0:
        return None, "nothing fits"
    promised = pytorch["device_bytes"]["high"]
    if file:
        return promised, planned_after(a, folder, file, model, card, pytorch["diff"])
    words += [word for key, value in pytorch["settings"].items() for word in (f"--{key}", value)]
    words += ["--bf16", "--accum", str(pytorch["setup"]["accumulation"]), "--seq", str(pytorch["setup"]["length"])]
    return promised, snug(a, "plan", *words)[1]["pytorch"]


def measured(a, folder, model, card, setup):
    """The object of `snug measure`, or none with the end of what the run said."""
    file, out = folder / "setup.json", folder / "result.json"
    file.write_text(json.dumps(setup))
    done = subprocess.run([a.snug, "measure", "--gpu", card, "--json", out, "--", a.python, HERE / "advice_run.py", model, file],
                          capture_output=True, text=True)
    return (json.loads(out.read_text()) if out.exists() else None), done.returncode, done.stderr[-300:]


def main():
    a = arguments()
    rows, reasons, failed = [], collections.Counter(), 0
    if a.json and a.json.exists():
        rows = [json.loads(line) for line in a.json.read_text().splitlines()]
    done = {row["name"] for row in rows}
    for name, file, model, card, flags in questions(a):
        if a.only not in name or name in done or len(rows) >= a.most:
            continue
        with tempfile.TemporaryDirectory(prefix="advice-") as folder:
            folder = pathlib.Path(folder)
            began = time.time()
            promised, planned = advised(a, folder, file, model, card, flags)
            if promised is None:
                reasons[planned] += 1
                continue
            kept = planned["device_bytes"]["high"] == promised
            result, code, said = measured(a, folder, model, card, planned["setup"])
            if code not in (0, 3):
                failed += 1
                print(f"      failed  {name}: {said}", flush=True)
                continue
            got = result["measured"]
            fits = code == 0 and got["fits"]
            rows.append(dict(name=name, fits=fits, kept=kept, setup=planned["setup"], planned_reserved_bytes=planned["reserved_bytes"],
                             measured_reserved_bytes=got["reserved_bytes"], planned_bytes=planned["allocated_bytes"],
                             measured_bytes=got["allocated_bytes"], seconds=round(time.time() - began, 1)))
            if a.json:
                with a.json.open("a") as out:
                    out.write(json.dumps(rows[-1]) + "\n")
            more = 100 * (got["reserved_bytes"] / planned["reserved_bytes"] - 1)
            print(f"{'fits' if fits else 'RAN OUT':>12}  {'' if kept else 'OTHER THAN PROMISED '}reserved {more:+6.2f} % of planned "
                  f"{planned['reserved_bytes'] / 2**30:5.1f} GiB  {name}  {rows[-1]['seconds']} s", flush=True)
    good = sum(row["fits"] and row["kept"] for row in rows)
    print(f"{good} of {len(rows)} pieces of advice fit; {failed} runs failed otherwise; not asked further: {sum(reasons.values())}")
    for reason, count in reasons.most_common():
        print(f"  {count}: {reason}")
    return 0 if good == len(rows) and len(rows) >= a.least and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
