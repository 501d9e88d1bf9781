#!/usr/bin/env python3
"""Holds snug's tokenizer against Hugging Face's `tokenizers`, token for token: ids, spans and the way back.

    pip install tokenizers==0.23.3
    tests/oracle/tokenizer_compare.py build/bench/tokenizer SHARED [--megabytes 1] [--seed 1] [--only NAME] [--begin NAME]

Every published tokenizer below SHARED/data and a small trained one of each style (tokenizer_styles.py) gets the mixed text of
tokenizer_mixture.py in rows of about 2 KB, one in eight of them with bytes that are no UTF-8. Spans are compared with trim_offsets off.
"""

import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer

from tokenizer_mixture import Mixture
from tokenizer_styles import styles

PUBLISHED = ["gpt2", "smollm2", "smollm2/v5-pairs-lora", "qwen2.5", "qwen3", "mistral-v0.1", "tinyllama", "gemma-cropped-fixture/tokenizer_gemma_cropped.json"]
# Where `tokenizers` itself loses count of the bytes: unknown bytes are dropped (SmolLM2 lacks some) or put behind others.
SPANS_DIFFER = {"smollm2", "smollm2/v5-pairs-lora", "unknown bytes dropped", "no fallback, no unknown", "part of the bytes, fused True", "part of the bytes, fused False",
                "gemma-cropped-fixture/tokenizer_gemma_cropped.json"}


def untrimmed(node):
    if isinstance(node, dict):
        return {k: False if k == "trim_offsets" else untrimmed(v) for k, v in node.items()}
    return [untrimmed(v) for v in node] if isinstance(node, list) else node


class Snug:
    def __init__(self, program, path):
        self.process = subprocess.Popen([program, "answer", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def read(self, size):
        (count,) = struct.unpack("<I", self.process.stdout.read(4))
        data = self.process.stdout.read(count * size)
        return data if size == 1 else list(struct.unpack(f"<{count}i", data))

    def ask(self, text):
        self.process.stdin.write(struct.pack("<I", len(text)) + text)
        self.process.stdin.flush()
        special, ids, ends = self.read(4), self.read(4), self.read(4)
        return {"special": special, "ids": ids, "spans": list(zip(ends[::2], ends[1::2])), "decoded": self.read(1).decode(), "plain": self.read(1).decode()}


def oracle(tokenizer, raw):
    text = raw.decode("utf-8", "replace")
    try:
        encoding = tokenizer.encode(text, add_special_tokens=False)
    except BaseException as panic:  # Strip among other normalizers: "AddedVocabulary bad split"
        if type(panic).__name__ != "PanicException":
            raise
        return None
    starts, at = [], 0
    for character in text:
        starts.append(at)
        at += len(character.encode())
    starts.append(at)
    return {"special": tokenizer.encode(text, add_special_tokens=True).ids, "ids": encoding.ids,
            "spans": [(starts[a], starts[b]) for a, b in encoding.offsets],
            "decoded": tokenizer.decode(encoding.ids, skip_special_tokens=False), "plain": tokenizer.decode(encoding.ids, skip_special_tokens=True)}


def compare(name, program, path, arguments):
    content = json.loads(pathlib.Path(path).read_text())
    content["post_processor"] = untrimmed(content.get("post_processor"))
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    snug = Snug(program, path)
    mixture, done, tokens, wrong, panics = Mixture(arguments.seed), 0, 0, 0, 0
    row = 0
    while done < arguments.megabytes * 1e6 and wrong < 3:
        row += 1
        damaged = row % 8 == 0
        raw = mixture.text(64000 if row % 100 == 50 else 2000, damaged) if row > 1 else b""
        done += len(raw)
        ours, theirs = snug.ask(raw), oracle(tokenizer, raw)
        if theirs is None:
            panics += 1
            continue
        tokens += len(ours["ids"])
        for key in theirs:
            if key == "spans" and (name in SPANS_DIFFER or damaged):
                continue
            if ours[key] != theirs[key]:
                wrong += 1
                at = next((i for i, (a, b) in enumerate(zip(ours[key], theirs[key])) if a != b), min(len(ours[key]), len(theirs[key])))
                print(f"  {name}, row {row}: {key} differ at {at}: {ours[key][at:at + 4]!r} here, {theirs[key][at:at + 4]!r} there"
                      + (f", text {raw[ours['spans'][at][0]:][:40]!r}" if key in ("ids", "spans") and at < len(ours["spans"]) else ""))
    snug.process.stdin.close()
    print(f"{'DIFFERS' if wrong else 'same   '} {name}: {done * 1e-6:.2f} MB, {tokens} tokens"
          + (f", {panics} rows without an answer there" if panics else ""), flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("shared", type=pathlib.Path)
    parser.add_argument("--megabytes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="names that contain this")
    parser.add_argument("--begin", default="", help="from the first name that contains this")
    arguments = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        cases = [(n, arguments.shared / "data" / "tokenizers" / n) for n in PUBLISHED]
        cases.append(("tinyllama added tokens", arguments.shared / "data" / "adapters" / "tinyllama-v0-added-tokens-resized-embed"))
        for number, (name, text) in enumerate(styles()):
            path = pathlib.Path(folder) / f"{number}.json"
            path.write_text(text)
            cases.append((name, path))
        first = next(i for i, (name, _) in enumerate(cases) if arguments.begin in name)
        for name, path in cases[first:]:
            if arguments.only and arguments.only not in name:
                continue
            path = path / "tokenizer.json" if path.is_dir() else path
            wrong += compare(name, arguments.program, str(path), arguments) > 0
    print(f"{wrong} tokenizers differ")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
