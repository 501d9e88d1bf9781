#!/usr/bin/env python3
"""Writes tests/golden/tokenizer/styles.json: what Hugging Face's `tokenizers` makes of the mixed text, as hashes.

    pip install tokenizers==0.23.3
    tests/oracle/tokenizer_hashes.py SHARED      # SHARED/data/tokenizers holds the published tokenizers

Every style of tokenizer_styles.py, trained small, its model apart since many share it; and the published tokenizers by name. A hash folds
ids, ends of spans or bytes of text with FNV-1a, 64 bits, one step each. Rows are those of tokenizer_compare.py, none of them damaged.
"""

import json
import pathlib
import sys

import tokenizers
from tokenizers import Tokenizer

from tokenizer_compare import PUBLISHED, SPANS_DIFFER, oracle, untrimmed
from tokenizer_mixture import GOLDEN, Mixture
from tokenizer_styles import styles


def fold(hashed, items):
    for item in items:
        hashed = ((hashed ^ item) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return hashed


def hashes(name, content, rows):
    content = json.loads(content)
    content["post_processor"] = untrimmed(content.get("post_processor"))
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    mixture = Mixture(1)
    keys = [k for k in ("special", "ids", "spans", "decoded", "plain") if k != "spans" or name not in SPANS_DIFFER]
    result = {key: 0xCBF29CE484222325 for key in keys}
    skipped = []
    for row in range(rows):
        answer = oracle(tokenizer, mixture.text(2000))
        if answer is None:  # it panics
            skipped.append(row)
            continue
        answer["spans"] = [end for span in answer["spans"] for end in span]
        for key in keys:
            result[key] = fold(result[key], answer[key].encode() if isinstance(answer[key], str) else answer[key])
    return {"rows": rows, "skipped": skipped, **{key: f"{value:016x}" for key, value in result.items()}}


def main():
    shared = pathlib.Path(sys.argv[1]) / "data" / "tokenizers"
    models, made, published = [], [], []
    for name, text in styles(330):
        content = json.loads(text)
        row = {"name": name, **hashes(name, text, 30)}
        model = content.pop("model")
        if model not in models:
            models.append(model)
        made.append({**row, "model": models.index(model), "file": json.dumps(content, ensure_ascii=False, separators=(",", ":"))[1:-1]})
    for name in PUBLISHED:
        path = shared / name
        text = (path / "tokenizer.json" if path.is_dir() else path).read_text()
        published.append({"name": name, **hashes(name, text, 500)})
    text = json.dumps({"versions": {"tokenizers": tokenizers.__version__}, "made": made, "published": published,
                       "models": [json.dumps(m, ensure_ascii=False, separators=(",", ":")) for m in models]}, ensure_ascii=False, separators=(",", ":"))
    (GOLDEN / "styles.json").write_text(text.replace('{"name"', '\n{"name"').replace('"models"', '\n"models"') + "\n")


if __name__ == "__main__":
    main()
