"""Small tokenizers of every published style, trained here on the mixed text of tokenizer_mixture.py: the text of a tokenizer.json each."""

import copy
import json

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from tokenizer_mixture import Mixture

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
CL100K = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
O200K = "|".join([r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                  r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                  r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK3 = [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
             "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]
DEEPSEEK2 = ["[\r\n]", "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u0400-\u0481\u048a-\u052f\u1e00-\u1f15]+", "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
             "\\s+$", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"]
BLOOM = " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"

FLAGS = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=False)
SPECIAL = dict(FLAGS, special=True)
UNDERLINE = "\u2581"


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def byte_level(use_regex=False, prefix=False, trim=True):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": trim, "use_regex": use_regex}


def sequence(key, *steps):
    return {"type": "Sequence", key: list(steps)}


def cuts(*steps):
    return sequence("pretokenizers", *steps)


def metaspace(scheme=None, split=None, old=None):
    step = {"type": "Metaspace", "replacement": UNDERLINE}
    if old is not None:
        step["add_prefix_space"] = old
    if scheme is not None:
        step["prepend_scheme"] = scheme
    if split is not None:
        step["split"] = split
    return step


def template(before=(), after=()):
    token = lambda t: {"SpecialToken": {"id": t[0], "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    return {"type": "TemplateProcessing", "single": [*map(token, before), text, *map(token, after)],
            "pair": [text, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {t[0]: {"id": t[0], "ids": [t[1]], "tokens": [t[0]]} for t in (*before, *after)}}


def corpus():
    mixture = Mixture(7)
    rows = [mixture.text(1000).decode() for _ in range(250)]
    return rows + ["The quick brown fox jumps over the lazy dog, and the tokenizer of the language model merges its words. " * 20]


def file(model, **parts):
    whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
             "post_processor": None, "decoder": None}
    whole.update(parts)
    whole["model"] = model
    return whole


def trained(normalizer, pre_tokenizer, size, **options):
    tokenizer = Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=size, show_progress=False, min_frequency=2, **options))
    return json.loads(tokenizer.to_str())["model"]


def with_tokens(model, tokens):
    """Tokens put before the vocabulary."""
    model = copy.deepcopy(model)
    model["vocab"] = {t: i for i, t in enumerate([*tokens, *(t for t in model["vocab"] if t not in tokens)])}
    return model


def added(model, *tokens):
    rows, next_id = [], len(model["vocab"])
    for content, flags in tokens:
        known = model["vocab"].get(content)
        rows.append({"id": next_id if known is None else known, "content": content, **FLAGS, **flags})
        next_id += known is None
    return rows


EVERY_FLAG = [("[X]", {}), ("[L]", {"lstrip": True}), ("[R]", {"rstrip": True}), ("[W]", {"single_word": True}), ("[N]", {"normalized": True}),
              ("[N]\u00c9", {"normalized": True}), ("<mask>", {"lstrip": True, "special": True}), ("<|end|>", {"rstrip": True, "special": True}),
              ("  ", {}), ("\n\n", {}), ("\t\t", {"normalized": True}), ("<|endoftext|>", {"special": True}), ("<|im_start|>", {"special": True}),
              ("cat", {"normalized": True, "single_word": True}), ("<tab>", {"special": True, "normalized": True})]


def byte_level_styles(size):
    model = trained(None, pre_tokenizers.Sequence([pre_tokenizers.ByteLevel(add_prefix_space=False)]), size,
                    initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    plain = dict(decoder=byte_level(True, True), post_processor=byte_level(True, True, False), added_tokens=added(model, *EVERY_FLAG))
    make = lambda pre, **more: file({**model, **more.pop("model", {})}, pre_tokenizer=pre, **{**plain, **more})
    llama3 = with_tokens(model, [])
    for token in ["\u0120international", "ization\u0120models", "Hello", "\u0120\u0120\u0120\u0120\u0120\u0120\u0120"]:
        llama3["vocab"].setdefault(token, len(llama3["vocab"]))
    llama3["ignore_merges"] = True
    bos = template([("<s>", 0)])
    yield "gpt2", make(byte_level(True))
    yield "gpt2 prefix space", make(byte_level(True, True), post_processor={"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": False, "add_prefix_space": True})
    yield "llama3", file(llama3, pre_tokenizer=cuts(split(LLAMA3), byte_level()), decoder=byte_level(True, True), added_tokens=added(llama3, *EVERY_FLAG),
                         post_processor=sequence("processors", byte_level(True, True, False), bos))
    yield "qwen", make(cuts(split(QWEN), byte_level(trim=False)), normalizer={"type": "NFC"})
    yield "cl100k", make(cuts(split(CL100K.replace("{1,3}+", "{1,3}")), byte_level()))
    yield "cl100k removed inverted", make(cuts(split(LLAMA3, "Removed", True), byte_level()))
    yield "o200k", make(cuts(split(O200K), byte_level()))
    yield "tekken", make(cuts(split(TEKKEN), byte_level()), model={"ignore_merges": True})
    yield "kimi", make(cuts(split(KIMI), byte_level()))
    yield "deepseek3", make(cuts(*(split(p) for p in DEEPSEEK3), byte_level()), normalizer=sequence("normalizers"))
    yield "deepseek2", make(cuts(*(split(p) for p in DEEPSEEK2), {"type": "Digits", "individual_digits": True}, byte_level()), normalizer=sequence("normalizers"))
    yield "falcon", make(cuts({"type": "Punctuation", "behavior": "Contiguous"}, byte_level(True), {"type": "Digits", "individual_digits": False}, split("[0-9][0-9][0-9]")))
    yield "starcoder", make(cuts({"type": "Digits", "individual_digits": True}, byte_level(True)))
    yield "bloom", make(cuts(split(BLOOM), byte_level()))
    yield "nfkc punctuation digits", make(cuts({"type": "Punctuation"}, {"type": "Digits", "individual_digits": False}, byte_level(True)), normalizer={"type": "NFKC"})
    yield "nfd lowercase", make(byte_level(True), normalizer=sequence("normalizers", {"type": "NFD"}, {"type": "Lowercase"}))
    yield "nfkd strip accents", make(byte_level(True), normalizer=sequence("normalizers", {"type": "NFKD"}, {"type": "StripAccents"}))
    yield "lowercase nfc strip", make(byte_level(True), normalizer=sequence("normalizers", {"type": "Lowercase"}, {"type": "NFC"}, {"type": "Strip", "strip_left": True, "strip_right": True}), added_tokens=[])
    yield "strip accents alone", make(byte_level(True), normalizer={"type": "StripAccents"})
    yield "nmt", make(byte_level(True), normalizer={"type": "Nmt"})
    yield "replace by expression", make(byte_level(True), normalizer=sequence("normalizers", {"type": "Replace", "pattern": {"Regex": r"\s+|\d(?=\d)|\w{6,}"}, "content": "\u00e9-"}, {"type": "NFD"}))
    yield "byte-level normalizer", file(model, normalizer={"type": "ByteLevel"}, pre_tokenizer=split(r"\u0120?[^\u0120]+"), decoder=byte_level(), added_tokens=added(model, ("[X]", {})))
    for behavior in ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]:
        yield f"split {behavior}", make(cuts(split(" ", behavior, False, "String"), split(r"[\p{P}\w]", behavior), byte_level()))
        yield f"split {behavior} inverted", make(cuts(split(r"\p{L}+|\d", behavior, True), {"type": "Punctuation", "behavior": behavior}, byte_level()))
    yield "white space", make(cuts({"type": "Whitespace"}, byte_level()))
    yield "white space split", make(cuts({"type": "WhitespaceSplit"}, {"type": "FixedLength", "length": 7}, byte_level()))
    yield "bert", make(cuts({"type": "BertPreTokenizer"}, {"type": "CharDelimiterSplit", "delimiter": "e"}, byte_level()))
    yield "empty matches", make(cuts(split(r"(?=[A-Z\p{Han}])|t*|$"), byte_level()))
    fewer = copy.deepcopy(model)
    for token in list(fewer["vocab"]):
        if any(c in token for c in "te\u00e2"):
            del fewer["vocab"][token]
    fewer["merges"] = [m for m in fewer["merges"] if all(p in fewer["vocab"] for p in m)]
    fewer = with_tokens(fewer, ["<unk>"])
    parts = lambda m: dict(pre_tokenizer=byte_level(True), decoder=byte_level(), added_tokens=added(m, ("[X]", {})))
    yield "unknown bytes", file({**fewer, "unk_token": "<unk>"}, **parts(fewer))
    yield "unknown bytes fused", file({**fewer, "unk_token": "<unk>", "fuse_unk": True}, **parts(fewer))
    yield "unknown bytes dropped", file(fewer, **parts(fewer))


def sentencepiece_styles(size):
    model = trained(normalizers.Replace(" ", UNDERLINE), pre_tokenizers.Sequence([pre_tokenizers.Metaspace(prepend_scheme="never"), pre_tokenizers.Split("\n", "isolated")]), size, limit_alphabet=size // 4)
    model["merges"] += [[UNDERLINE * n, UNDERLINE * n] for n in (1, 2, 4)]
    for n in (2, 4, 8):
        model["vocab"].setdefault(UNDERLINE * n, len(model["vocab"]))
    names = ["<unk>", "<s>", "</s>"]
    model = with_tokens(model, names + [f"<0x{b:02X}>" for b in range(256)])
    model.update(unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    back = lambda strip: sequence("decoders", {"type": "Replace", "pattern": {"String": UNDERLINE}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
                                  *([{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if strip else []))
    names = [(n, SPECIAL) for n in names]
    marks = {"type": "Replace", "pattern": {"String": " "}, "content": UNDERLINE}
    legacy = sequence("normalizers", {"type": "Prepend", "prepend": UNDERLINE}, marks)
    post = template([("<s>", 1)])

    def make(model=model, tokens=(), decoder=back(True), **parts):
        return file(model, **{"decoder": decoder, "post_processor": post, "added_tokens": added(model, *names, *tokens), **parts})

    yield "llama2 legacy", make(normalizer=legacy)
    yield "llama2 legacy, merges as strings, normalized specials", make({**{k: v for k, v in model.items() if k not in ("type", "ignore_merges")}, "merges": [" ".join(m) for m in model["merges"]]},
                                                                        [("[N]", {"normalized": True, "special": True}), ("[X]", {"normalized": True})], normalizer=legacy)
    for scheme in ["first", "always", "never"]:
        for whole in [True, False]:
            yield f"metaspace {scheme} split {whole}", make(tokens=EVERY_FLAG, pre_tokenizer=metaspace(scheme, whole), decoder=metaspace(scheme, whole))
    yield "metaspace old with prefix", make(tokens=EVERY_FLAG, pre_tokenizer=metaspace(old=True), decoder=metaspace(old=True))
    yield "metaspace old without prefix", make(tokens=EVERY_FLAG, pre_tokenizer=metaspace("never", old=False), decoder=metaspace("never", old=False))
    yield "mistral", make(pre_tokenizer=metaspace("first", False), tokens=[("[INST]", SPECIAL), ("[/INST]", SPECIAL)])
    yield "metaspace first after strip", make(added_tokens=[], normalizer={"type": "Strip", "strip_left": True, "strip_right": False}, pre_tokenizer=metaspace("first", True))
    yield "metaspace first after cuts", make(tokens=EVERY_FLAG, normalizer={"type": "NFKC"}, pre_tokenizer=cuts({"type": "Punctuation"}, metaspace("first", True)))
    yield "metaspace first twice", make(pre_tokenizer=cuts(metaspace("always", True), metaspace("first", False)))
    gemma = [("<pad>", SPECIAL), ("<bos>", SPECIAL), ("<start_of_turn>", SPECIAL), ("\n\n", {}), ("\n\n\n", {}), (UNDERLINE * 2, {}), (UNDERLINE * 3, {}), ("\t\t", {}), ("<tab>", {})]
    yield "gemma", make(tokens=gemma, decoder=back(False), normalizer=marks, pre_tokenizer=split(" ", "MergedWithPrevious", False, "String"))
    yield "gemma without pre-tokenizer", make(tokens=gemma, decoder=back(False), normalizer=marks)
    phi3 = [("<|endoftext|>", SPECIAL), *((t, dict(SPECIAL, rstrip=True)) for t in ["<|user|>", "<|assistant|>", "<|end|>"])]
    yield "phi3", make(tokens=phi3, normalizer=legacy)
    yield "whole words", make({**model, "ignore_merges": True}, normalizer=legacy, tokens=EVERY_FLAG)
    yield "yi", make({**model, "fuse_unk": False}, normalizer=sequence("normalizers", marks), pre_tokenizer=split(r"\d|\n|[\p{Han}]{1,3}", "Isolated"))
    yield "nfc llama", make(normalizer=sequence("normalizers", {"type": "NFC"}, {"type": "Prepend", "prepend": UNDERLINE + "x"}, {"type": "Replace", "pattern": {"Regex": r" |\n\n"}, "content": UNDERLINE}))
    unknown = {k: v for k, v in model.items()}
    unknown["vocab"] = {t: i for i, t in enumerate(t for t in model["vocab"] if t not in ("<0xE2>", "<0x9F>", "<0xF0>", "<0xCC>"))}
    unknown["merges"] = [m for m in model["merges"] if m[0] in unknown["vocab"] and m[1] in unknown["vocab"] and m[0] + m[1] in unknown["vocab"]]
    for fuse in [True, False]:
        yield f"part of the bytes, fused {fuse}", make({**unknown, "fuse_unk": fuse}, normalizer=legacy)
    yield "no fallback", make({**model, "byte_fallback": False}, normalizer=legacy)
    yield "no fallback, no unknown", make({**model, "byte_fallback": False, "unk_token": None}, normalizer=legacy)
    yield "decoder null", make(normalizer=legacy, decoder=None)


def styles(size=3000):
    """Pairs of a name and the text of a tokenizer.json."""
    for name, content in [*byte_level_styles(size), *sentencepiece_styles(size)]:
        yield name, json.dumps(content, ensure_ascii=False)
