#!/usr/bin/env python3
"""Arrows between rooms run one way: checks which folder of src/ includes which, who may know addresses, and that no file has
become two: none is longer than 500 lines."""

import pathlib
import re
import sys

MAY_USE = {
    "base": set(),
    "quantize": {"base"},
    "model": {"base"},
    "recipe": {"base"},
    "op": {"base"},
    "targets": {"base", "op"},
    "program": {"base", "op", "model", "recipe"},
    "plan": {"base", "op", "targets", "model", "recipe", "program"},
    "advise": {"base", "model", "recipe", "program", "plan", "eager"},
    "formats": {"base", "quantize", "model", "recipe"},
    "kernels": {"base", "op", "targets", "quantize"},
    "tokenizer": {"base"},
    "chat": {"base"},
    "data": {"base", "recipe", "tokenizer", "chat"},
    "torch": {"base", "formats"},
    "eager": {"base", "model", "recipe", "torch"},
    "watch": {"base"},
    "measure": {"base", "model"},
    "explain": {"base", "model", "recipe", "program", "plan", "advise", "torch"},
    "report": {"base", "model", "recipe", "program", "plan", "advise", "torch", "eager", "measure", "explain", "watch"},
    "comm": {"base", "formats"},
    "run": {"base", "op", "model", "recipe", "program", "plan", "formats", "quantize", "kernels", "comm"},
    "train": {"comm", "base", "model", "recipe", "program", "plan", "formats", "tokenizer", "chat", "data", "run"},
    "generate": {"base", "model", "recipe", "program", "plan", "formats", "tokenizer", "chat", "run"},
    "ask": {"base", "model", "recipe", "program", "plan", "advise", "formats", "torch", "explain", "report", "eager"},
    "cli": {"ask", "base", "model", "recipe", "program", "plan", "advise", "formats", "tokenizer", "chat", "data", "comm", "run", "train", "generate", "torch", "explain", "watch", "report", "eager", "measure"},
    "library": {"base", "model", "recipe", "plan", "advise", "report", "ask"},
}

# What knows where tensors lie. Only src/run may: all others read and write them through run/transfer.h.
ADDRESSES = {"run/arena.h", "run/binding.h", "run/in_place.h", "run/page_file.h"}
MOST_LINES = 500
ADDRESS_WORDS = re.compile(r"\b(InPlace|bound_view|PageFile)\b|\bbinding\.(base|address)\b")

source = pathlib.Path(__file__).resolve().parent.parent / "src"
wrong = []
for path in sorted(source.rglob("*")):
    if path.suffix not in {".cpp", ".h", ".cu", ".cuh"} or path.parent == source:
        continue
    room = path.relative_to(source).parts[0]
    if room not in MAY_USE:
        wrong.append(f"{path}: no room '{room}' in this script")
        continue
    lines = path.read_text().splitlines()
    if len(lines) > MOST_LINES:
        wrong.append(f"{path.relative_to(source.parent)}: {len(lines)} lines; a file of one idea has {MOST_LINES} at most")
    for number, line in enumerate(lines, 1):
        found = re.match(r'\s*#\s*include\s+"([a-z_]+)/', line)
        if found and (source / found[1]).is_dir() and found[1] != room and found[1] not in MAY_USE[room]:
            wrong.append(f"src/{path.relative_to(source)}:{number}: '{room}' may not include '{found[1]}'")
        included = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if room != "run" and ((included and included[1] in ADDRESSES) or ADDRESS_WORDS.search(line)):
            wrong.append(f"src/{path.relative_to(source)}:{number}: only 'run' knows where tensors lie; use Transfer")
print("\n".join(wrong) if wrong else "every include goes the right way")
sys.exit(1 if wrong else 0)
