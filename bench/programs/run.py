#!/usr/bin/env python3
"""Runs the training programs beside it to their end, unchanged, and prints a line a program: exit code, steps seen, peaks, seconds, host memory.

  run.py PYTHON [SNUG] [NAME…]            on a null device, by `snug measure`
  run.py PYTHON --card [NAME…]            on this machine's card, with the same stand-ins for weights, tokenizers and rows

SNUG_PROGRAMS_OUT=FILE adds a JSON line a program: what it held, phase by phase and step by step."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RANKS = {"ddp": 2, "fsdp": 2}
# Of what watches a program on a null device, on a card: its phases and what stands in for files. Nothing that a card does by itself.
ON_A_CARD = """
import os, sys
sys.path.insert(0, os.path.join(os.environ["SNUG_MEASURE_DIR"], "package"))
import snug_measure

def after_torch(module):
    from snug_measure import phases
    class Nothing:
        def __getattr__(self, name):
            return lambda *_: b"" if name.endswith("refused") else 0
    phases._library = Nothing
    phases.begin(module)

def after_models(module):
    from snug_measure import weights
    weights._leave_weights_undrawn = lambda base: None
    weights.prepare(module)

snug_measure.AFTER.update({"torch": after_torch, "transformers.modeling_utils": after_models})
for name in ("torch.utils.checkpoint", "triton.runtime.jit", "triton.runtime.autotuner", "transformers.modeling_flash_attention_utils",
             "transformers.generation.utils", "transformers.training_args"):
    snug_measure.AFTER.pop(name, None)
snug_measure.watch()
"""


def on_a_card(command, folder):
    """(exit code, what it said, what it held) of a command, watched but on the card that is there."""
    folder = pathlib.Path(folder)
    for name in ("results", "site", "package"):
        (folder / name).mkdir()
    (folder / "models.txt").write_text((ROOT / "src/model/models.txt").read_text())
    (folder / "package" / "snug_measure").symlink_to(ROOT / "src/measure/python/snug_measure")
    (folder / "site" / "sitecustomize.py").write_text(ON_A_CARD)
    path = os.pathsep.join(filter(None, [str(folder / "site"), os.environ.get("PYTHONPATH")]))
    environment = dict(os.environ, PYTHONPATH=path, SNUG_MEASURE_DIR=str(folder), SNUG_MEASURE_SYNTHETIC="1", WANDB_MODE="disabled",
                       HF_HUB_OFFLINE="1", HF_HOME=str(folder / "cache"))
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
    held = [json.loads(path.read_text()) for path in (folder / "results").glob("*.json")]
    return done.returncode, done.stdout + done.stderr, max(held, key=lambda one: one["allocated_bytes"], default={})


def on_a_null_device(snug, command, ranks, folder):
    done = subprocess.run([snug, "measure", "--gpu", os.environ.get("SNUG_PROGRAMS_GPU", "H100"), "--synthetic", "--gpus", str(ranks), "--json", "m.json", "--", *command],
                          cwd=folder, capture_output=True, text=True, timeout=900)
    result = pathlib.Path(folder) / "m.json"
    return done.returncode, done.stdout + done.stderr, json.loads(result.read_text())["measured"] if result.exists() else {}


def main():
    python, rest = sys.argv[1], sys.argv[2:]
    card = "--card" in rest
    rest = [word for word in rest if word != "--card"]
    snug = rest.pop(0) if rest and "/" in rest[0] else str(ROOT / "build" / "snug")
    programs = [path for path in sorted(HERE.glob("*.py")) if path.stem != "run" and (not rest or path.stem in rest)]
    for path in programs:
        ranks = RANKS.get(path.stem, 1)
        if card and ranks > 1:
            print(f"{path.stem:18} skipped: it needs {ranks} cards", flush=True)
            continue
        launch = [python, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)] if ranks > 1 else [python]
        with tempfile.TemporaryDirectory(prefix="snug-programs-") as folder:
            began = time.time()
            code, said, held = on_a_card([*launch, str(path)], folder) if card else on_a_null_device(snug, [*launch, str(path)], ranks, folder)
            seconds = time.time() - began
        (pathlib.Path(tempfile.gettempdir()) / f"snug-program-{path.stem}.log").write_text(said)
        if "SNUG_PROGRAMS_OUT" in os.environ:
            with open(os.environ["SNUG_PROGRAMS_OUT"], "a") as out:
                out.write(json.dumps({"program": path.stem, "code": code, **held}) + "\n")
        print(f"{path.stem:18} code {code}  {len(held.get('steps', []))} steps  {held.get('allocated_bytes', 0):>12} allocated "
              f"{held.get('reserved_bytes', 0):>12} reserved  peak in {held.get('phase')}  {seconds:5.1f} s  "
              f"{held.get('host_peak_bytes', 0) / 2**30:.2f} GiB", flush=True)


if __name__ == "__main__":
    sys.exit(main())
