#!/usr/bin/env python3
"""What bench/tokenizer.sh measures: tokenizer_files.py TOKENIZERS DIRECTORY writes texts and tokenizers into DIRECTORY."""

import json
import pathlib
import random
import sys
import sysconfig

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "oracle"))
from tokenizer_mixture import Mixture

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def cased(ending, digits):
    lead = r"[^\r\n\p{L}\p{N}]?"
    return "|".join([f"{lead}{UPPER}*{LOWER}+{ending}", f"{lead}{UPPER}+{LOWER}*{ending}", digits, REST])


O200K = cased("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", r"\p{N}{1,3}")
TEKKEN = cased("", r"\p{N}")
DEEPSEEK = [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]


def together(pattern, size):
    """The first `size` bytes of the files, in order of their names."""
    parts, total = [], 0
    for path in sorted(pathlib.Path(pattern[0]).glob(pattern[1])):
        parts.append(path.read_bytes())
        total += len(parts[-1])
        if total >= size:
            break
    return b"".join(parts)[:size]


def chinese(size):
    choose = random.Random(1)
    sentences = ("".join(chr(0x4E00 + int(choose.paretovariate(0.7) * 7) % 3000) for _ in range(choose.randint(4, 20))) for _ in iter(int, 1))
    text = ""
    while 3 * len(text) < size:
        text += next(sentences) + choose.choice(["，", "，", "。", "。\n"])
    return text.encode()


def of_gemma_size():
    """As many tokens and merges as Gemma 3 has: all of up to three letters and some longer ones; each merge that makes a token of two."""
    choose = random.Random(5)
    letters = "\u2581aàbcdeéfghilmnorstuабвгдежзиклмно"
    names = ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *letters, *(chr(0x4E00 + i) for i in range(6000))]
    short = [a + b for a in letters for b in letters]
    short += [a + b for a in short for b in letters]
    vocabulary = {name: i for i, name in enumerate(names + short)}
    while len(vocabulary) < 262144:
        vocabulary.setdefault(choose.choice(short) + "".join(choose.choices(letters, k=choose.choice([1, 1, 2, 3]))), len(vocabulary))
    merges = [[token[:i], token[i:]] for token in vocabulary if token[0] != "<" for i in range(1, len(token)) if token[:i] in vocabulary and token[i:] in vocabulary]
    added = [(i, name, True) for i, name in enumerate(names[:4])] + [(262144 + i, f"<unused{i}>", False) for i in range(6000)]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"version": "1.0", "added_tokens": [{"id": i, "content": content, **flags, "special": special} for i, content, special in added],
            "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
            "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
            "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "vocab": vocabulary, "merges": merges[:514906]}}


def main():
    tokenizers, directory = map(pathlib.Path, sys.argv[1:])
    texts = {"english": together(("/usr/share/doc", "*/copyright"), 3_000_000), "code": together((sysconfig.get_path("stdlib"), "**/*.py"), 3_000_000),
             "chinese": chinese(1_000_000), "mixture": Mixture(1).text(1_000_000)}
    for name, text in {**texts, "all": b"".join(texts.values())}.items():
        (directory / f"{name}.txt").write_bytes(text)
    write = lambda name, content: (directory / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False, indent=2))
    write("gemma_size", of_gemma_size())

    qwen = json.loads((tokenizers / "qwen3" / "tokenizer.json").read_text())
    split = lambda expression: {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}
    byte_level = lambda alone: {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": alone}
    styles = {"Llama 3": [split(LLAMA3), byte_level(False)], "GPT-4o": [split(O200K), byte_level(False)], "Mistral's Tekken": [split(TEKKEN), byte_level(False)],
              "DeepSeek 3": [*map(split, DEEPSEEK), byte_level(False)], "StarCoder": [{"type": "Digits", "individual_digits": True}, byte_level(True)],
              "Falcon": [{"type": "Punctuation", "behavior": "Contiguous"}, byte_level(True), {"type": "Digits", "individual_digits": False}, split("[0-9][0-9][0-9]")]}
    for name, steps in styles.items():
        qwen["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
        qwen["normalizer"] = None
        qwen["model"]["ignore_merges"] = name in ("Llama 3", "Mistral's Tekken")
        write(f"like {name}", qwen)


if __name__ == "__main__":
    main()
