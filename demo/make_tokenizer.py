#!/usr/bin/env python3
"""Trains the demo's tokenizer: a byte-level BPE in Hugging Face's tokenizer.json format.

    make_tokenizer.py stories.jsonl --vocabulary 640 --output-dir DIRECTORY

The way of GPT-2: text is cut into words by its pattern, each byte becomes a printable character, and the most frequent
neighbours are merged until the vocabulary is full. Digits are never merged, so a number is read digit by digit; nor is a
space with a capital, so a name is read by the same tokens wherever it stands.
"""

import argparse
import collections
import json
import pathlib
import re

END = "<|end|>"
# GPT-2's pattern for ASCII text, which is all that the demo's stories hold.
WORD = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")


def byte_characters():
    """GPT-2's printable character for each byte."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(256 + i) for i, b in enumerate(others)}}


def merged(symbols, pair):
    """`symbols` with every occurrence of the pair joined, from left to right."""
    result, i = [], 0
    while i < len(symbols):
        if tuple(symbols[i:i + 2]) == pair:
            result.append(pair[0] + pair[1])
            i += 2
        else:
            result.append(symbols[i])
            i += 1
    return tuple(result)


def may_merge(pair):
    """Neither digits, nor a space (written as its printable character) with a capital."""
    left, right = pair
    return not any(c.isdigit() for c in left + right) and not (left == "Ġ" and right[0].isupper())


def train(counts, base, size):
    """The vocabulary (base first) and the merges in order. Ties go to the pair that sorts first."""
    vocabulary, merges = list(base), []
    while len(vocabulary) < size:
        pairs = collections.Counter()
        for symbols, count in counts.items():
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += count
        pairs = {p: n for p, n in pairs.items() if n > 1 and may_merge(p)}
        if not pairs:
            break
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        vocabulary.append(best[0] + best[1])
        joined = collections.Counter()
        for symbols, count in counts.items():
            joined[merged(symbols, best)] += count
        counts = joined
    return vocabulary, merges


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--vocabulary", type=int, default=640)
    parser.add_argument("--rows", type=int, default=5000, help="rows of the text to look at")
    parser.add_argument("--output-dir", type=pathlib.Path, required=True)
    options = parser.parse_args()

    characters = byte_characters()
    counts = collections.Counter()
    with options.text.open() as lines:
        for _, line in zip(range(options.rows), lines):
            for word in WORD.findall(json.loads(line)["text"]):
                counts[tuple(characters[b] for b in word.encode())] += 1
    base = [END, *sorted(characters.values())]
    vocabulary, merges = train(counts, base, options.vocabulary)

    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": 0, "content": END, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True}],
        "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {token: i for i, token in enumerate(vocabulary)},
                  "merges": [f"{a} {b}" for a, b in merges]}}
    configuration = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "clean_up_tokenization_spaces": False}
    options.output_dir.mkdir(parents=True, exist_ok=True)
    for name, content in [("tokenizer.json", tokenizer), ("tokenizer_config.json", configuration)]:
        (options.output_dir / name).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
