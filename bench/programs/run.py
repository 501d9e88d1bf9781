#!/usr/bin/env python3
"""Runs the training programs beside it under `snug measure`, unchanged: run.py PYTHON [SNUG] [NAME…]

A line a program: exit code, steps seen, peaks, seconds, host memory."""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
RANKS = {"ddp": 2, "fsdp": 2}


def main():
    python, rest = sys.argv[1], sys.argv[2:]
    snug = rest.pop(0) if rest and "/" in rest[0] else str(HERE.parent.parent / "build" / "snug")
    programs = [path for path in sorted(HERE.glob("*.py")) if path.stem != "run" and (not rest or path.stem in rest)]
    for path in programs:
        with tempfile.TemporaryDirectory(prefix="snug-programs-") as folder:
            launch = [python, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS[path.stem])] if path.stem in RANKS else [python]
            began = time.time()
            done = subprocess.run([snug, "measure", "--synthetic", "--gpus", str(RANKS.get(path.stem, 1)), "--json", "m.json", "--", *launch, str(path)],
                                  cwd=folder, capture_output=True, text=True, timeout=900)
            seconds, result = time.time() - began, pathlib.Path(folder) / "m.json"
            measured = json.loads(result.read_text())["measured"] if result.exists() else {}
            (pathlib.Path(tempfile.gettempdir()) / f"snug-program-{path.stem}.log").write_text(done.stdout + done.stderr)
        print(f"{path.stem:18} code {done.returncode}  {len(measured.get('steps', []))} steps  {measured.get('allocated_bytes', 0):>12} allocated "
              f"{measured.get('reserved_bytes', 0):>12} reserved  peak in {measured.get('phase')}  {seconds:5.1f} s  "
              f"{measured.get('host_peak_bytes', 0) / 2**30:.2f} GiB", flush=True)


if __name__ == "__main__":
    sys.exit(main())
