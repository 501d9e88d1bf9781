#!/usr/bin/env python3
"""Writes tests/golden/tokenizer/*.json: texts and the ids that Hugging Face's `tokenizers` gives them.

    pip install tokenizers==0.23.3
    python tests/oracle/tokenizer_golden.py SHARED     # SHARED/data/tokenizers holds the published tokenizers

`published.json` has the ids of real tokenizers (their files are not in the repository); `made.json` has small tokenizers made
here, file and all, for the features that the real ones do not show.
"""

import copy
import json
import pathlib
import sys

import tokenizers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

PUBLISHED = ["gpt2", "smollm2", "smollm2/v5-pairs-lora", "qwen2.5", "qwen3"]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

TEXTS = [
    "", " ", "a", "Hello, world!", "The quick brown fox jumps over the lazy dog.",
    "I'm sure they'll say it's what we'd've done; DON'T, WE'RE, I'VE, HE'S, you\u2019re",
    "int main(void) {\n\tfor (int i = 0; i < 10; ++i)\n\t\tprintf(\"%d\\n\", i * i);  // squares\n\treturn 0;\n}\n",
    "def f(x: list[int]) -> int:\n    return sum(y**2 for y in x if y != 0)\n\n\nclass A:\n    pass\n",
    "0 1 12 123 1234 12345 3.14159 1,000,000 2024-02-29 0xDEADBEEF 1e-8 \u0661\u0662\u0663 \u00bd \u2167 \u4e00\u4e8c\u4e09 \u00b2",
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01\u6211\u4eec\u5728\u8fd9\u91cc\u5b66\u4e60\u6df1\u5ea6\u5b66\u4e60\u3002\u6771\u4eac\u306b\u884c\u304d\u307e\u3059\u3002\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01 \u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22\u0e44\u0e21\u0e48\u0e21\u0e35\u0e0a\u0e48\u0e2d\u0e07\u0e27\u0e48\u0e32\u0e07",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645\u060c \u0643\u064e\u064a\u0652\u0641\u064e \u062d\u0627\u0644\u064f\u0643\u064e\u061f \u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e \u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u0393\u03b5\u03b9\u03ac \u03c3\u03bf\u03c5",
    "\U0001F468\u200d\U0001F469\u200d\U0001F467\u200d\U0001F466 \U0001F3F3\ufe0f\u200d\U0001F308 \U0001F1E9\U0001F1EA \U0001F44D\U0001F3FD \u2764\ufe0f 1\ufe0f\u20e3 \U0001F600\U0001F600",
    "caf\u00e9 cafe\u0301 \u212b \u00c5 A\u030a \u1e69 s\u0323\u0307 \uac00 \u1100\u1161 \ufb01 \u2126 \u0344 \u0958 q\u0307\u0323 \U0001D15E",
    "e\u0301" * 9 + " o\u0308\u0323" * 3,
    "  two  three   four    \t\ttabs\n\nlines\r\n\r\nmore \n \n  end   ", "\n", "\n\n\n", "\t \t", "   ", " \n x", "x \n", "a\r\rb",
    "no\u00a0break \u3000ideographic\u2003em \u1680ogham\u180emongolian\u2028line\u2029para\u0085next\u200bzero\ufeffbom",
    "<|endoftext|>", "a<|endoftext|>b <|endoftext|> c", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "x<|im_end|>y",
    "<|im_start|<|im_end|>|im_end|>", "<think>\nhm\n</think>\n\n<tool_call>{}</tool_call>", "<|endoftext|><|endoftext|>", "<repo_name>a/b<file_sep>",
    "'s 't 're 've 'm 'll 'd 'S 'LL '\u017f \u212a", "''''''", "\"\"\"doc\"\"\"", "...!!!???---___***", "a_b_c __init__ CamelCase snake_case kebab-case",
    "$E = mc^2$ \u2211\u221e\u222b \u2260 \u2264 \u00b1 \u2192 \u20ac100 \u00a35 \u00a5", "https://example.com/a?b=c&d=%20#e user@host.org",
    "\x00\x01\x04\x06\x13\x14\x16\x1d\x7f\x80\x9f\xad", "\ufffd\uffff\U0010ffff\ue000\U000f0000", "\u0300start \u200d\u200d", "\u01c5\u02b0\u0bb5\u2160\u24d0",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "abababababababab" * 12, "Donaudampfschifffahrtsgesellschaftskapit\u00e4nsm\u00fctzenabzeichen", "xyzzy " * 20, " " * 70 + "x", "=" * 90, "\u54c8" * 60,
    "The answer is 42.\n#### 42", "Q: 48/2 = <<48/2=24>>24 clips.",
]
MADE_TEXTS = [
    "", " ", "the cat sat on the mat", " the cat", "the  cat\n\nthe mat ", "cats, 123 mats; 4567", "[X] a[X]b [X]", "a [L] b[L] c \u00a0[L]", "a[R]  b [R]",
    "a[W]b [W] ,[W], \u0301[W] _[W]", "[W]", "thecat[W]", "[N]\u00e9[N]e\u0301[NK\u0327\u0302]", "[NK\u0327\u0302] [N\u0136\u0302]", "[B] x [B]  [B]y", "[X][L][R][W]",
    "<s>the</s>", "the cat" * 5, "Caf\u00e9 \u4f60\u597d \U0001F600", "-a-b--c-", "--", "a,b", "it's 'S", "[LONG][LONGER]", "[LONGE",
]


def golden(tokenizer, texts):
    rows = []
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        row = {"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)}
        special = tokenizer.encode(text, add_special_tokens=True).ids
        if special != ids:
            row["with_special"] = special
        plain = tokenizer.decode(ids, skip_special_tokens=True)
        if plain != row["decoded"]:
            row["without_special"] = plain
        rows.append(row)
    return rows


def base():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<s>", "</s>"], show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(["the cat sat on the mat, that cat is the fat cat of the land; 123 cats cats"] * 9, trainer)
    return json.loads(tokenizer.to_str())


def made():
    start = base()
    split = lambda pattern, behavior, invert=False: {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}
    bytes_only = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    sequence = lambda *steps: {"type": "Sequence", "pretokenizers": list(steps)}
    variants = {"plain": {}}
    variants["prefix space"] = {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}}
    variants["llama3"] = {
        "pre_tokenizer": sequence(split({"Regex": LLAMA3}, "Isolated"), bytes_only), "ignore_merges": True, "whole": ["\u0120sat\u0120on", "land", "mats"],
        "post_processor": {"type": "Sequence", "processors": [
            {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
            {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
             "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
             "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}}]}}
    variants["template on both sides"] = {"post_processor": {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [0, 0], "tokens": ["<s>", "<s>"]}, "</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}}}}
    for behavior in ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]:
        variants[f"split {behavior}"] = {"pre_tokenizer": sequence(split({"String": "-"}, behavior), split({"Regex": "[ ,]"}, behavior), bytes_only)}
        variants[f"split {behavior} inverted"] = {"pre_tokenizer": sequence(split({"Regex": r"\p{L}+|\d"}, behavior, True), bytes_only)}
    variants["empty matches"] = {"pre_tokenizer": sequence(split({"Regex": r"(?=[A-Zc])|t*"}, "Isolated"), bytes_only)}
    variants["digits together"] = {"pre_tokenizer": sequence({"type": "Digits", "individual_digits": False}, bytes_only)}
    flags = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=False)
    tokens = [("[X]", {}), ("[L]", {"lstrip": True}), ("[R]", {"rstrip": True}), ("[B]", {"lstrip": True, "rstrip": True, "special": True}),
              ("[W]", {"single_word": True}), ("[N]", {"normalized": True}), ("[N\u0136\u0302]", {"normalized": True}),
              ("[LONG]", {}), ("[LONG][LONGER]", {}), ("cat", {"normalized": True, "single_word": True}), ("\u4f60 \u597d", {})]
    variants["added tokens"] = {"normalizer": {"type": "NFC"}, "tokens": tokens}
    variants["added tokens without normalizer"] = {"tokens": tokens}
    variants["unknown"] = {"unknown": "<s>", "without": ["t", "\u00c3"], "fuse": False}
    variants["unknown fused"] = {"unknown": "<s>", "without": ["t", "\u00c3"], "fuse": True}
    variants["dropped bytes"] = {"without": ["t", "\u00c3"]}

    result = []
    for name, change in variants.items():
        file = copy.deepcopy(start)
        model = file["model"]
        for key in ["pre_tokenizer", "post_processor", "normalizer"]:
            file[key] = change.get(key, file[key])
        model["ignore_merges"] = change.get("ignore_merges", False)
        for token in change.get("whole", []):
            model["vocab"][token] = len(model["vocab"])
        if "without" in change:  # a smaller model, so that whole ids stay dense
            gone = change["without"]
            model["merges"] = [m for m in model["merges"] if not any(g in part for g in gone for part in m)]
            kept = [t for t in model["vocab"] if not any(g in t for g in gone)]
            model["vocab"] = {t: i for i, t in enumerate(kept)}
            model["unk_token"], model["fuse_unk"] = change.get("unknown"), change.get("fuse", False)
        next_id = len(model["vocab"])
        for content, given in change.get("tokens", []):
            known = model["vocab"].get(content)
            file["added_tokens"].append({"id": next_id if known is None else known, "content": content, **flags, **given})
            next_id += known is None
        text = json.dumps(file, ensure_ascii=False, separators=(",", ":"))
        tokenizer = Tokenizer.from_str(text)
        result.append({"name": name, "file": text, "cases": golden(tokenizer, MADE_TEXTS)})
    return result


def main():
    shared = pathlib.Path(sys.argv[1]) / "data" / "tokenizers"
    out = pathlib.Path(__file__).resolve().parent.parent / "golden" / "tokenizer"
    out.mkdir(parents=True, exist_ok=True)
    versions = {"tokenizers": tokenizers.__version__}
    published = [{"name": n, "cases": golden(Tokenizer.from_file(str(shared / n / "tokenizer.json")), TEXTS)} for n in PUBLISHED]
    for name, content in [("published", published), ("made", made())]:
        text = json.dumps({"versions": versions, "tokenizers": content}, ensure_ascii=True, separators=(",", ":"))
        (out / f"{name}.json").write_text(text.replace('{"name"', '\n{"name"').replace('{"text"', '\n {"text"') + "\n")


if __name__ == "__main__":
    main()
