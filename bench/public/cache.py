"""A local cache of models and data under their public names: a program that asks for `Qwen/Qwen2-0.5B` or `trl-lib/Capybara` in a directory
where these are folders takes the folder. Models: config.json of snug's catalogue and a real tokenizer, without weights. Data: rows of
GSM8K in the columns that the public set has."""

import array
import json
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ROWS, TEST_ROWS = 1000, 100
# Names that the catalogue has under another one.
SAME = {"NousResearch/Llama-3.2-1B": "meta-llama/Llama-3.2-1B", "NousResearch/Meta-Llama-3-8B": "meta-llama/Meta-Llama-3-8B",
        "gpt2": "openai-community/gpt2"}
# Which tokenizer a model gets: its own, or (Llama 3) one of a smaller vocabulary.
TOKENIZERS = (("qwen3", "qwen3"), ("qwen", "qwen2.5"), ("smollm", "smollm2"), ("gpt2", "gpt2"), ("mistral", "mistral-v0.1"),
              ("llama", "tinyllama"))
# Special tokens of those that have no tokenizer_config.json.
SPECIAL = {"smollm2": ("<|im_start|>", "<|im_end|>", "<|im_end|>"), "gpt2": ("<|endoftext|>",) * 3}


def catalogue():
    """config.json of each model that snug knows, by each of its names."""
    found = {}
    for line in (ROOT / "src/model/models.txt").read_text().splitlines():
        names, brace, rest = line.partition("{")
        if brace and not line.startswith("#"):
            found.update({name: json.loads(brace + rest) for name in names.split()})
    return found


def _give_tokenizer(name, folder, tokenizers):
    kind = next((kind for word, kind in TOKENIZERS if word in name.lower()), "tinyllama")
    for file in (tokenizers / kind).iterdir():
        if file.is_file() and file.name not in ("SOURCE.txt", "config.json", "adapter_config.json", "generation_config.json"):
            shutil.copyfile(file, folder / file.name)
    if kind in SPECIAL:
        start, end, pad = SPECIAL[kind]
        (folder / "tokenizer_config.json").write_text(json.dumps(
            {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": start, "eos_token": end, "pad_token": pad, "model_max_length": 8192}))


def make_model(folder, name, tokenizers):
    """The folder of a model: its configuration and a tokenizer."""
    path = folder / name
    if path.exists():
        return
    path.mkdir(parents=True)
    config = catalogue()[SAME.get(name, name)]
    (path / "config.json").write_text(json.dumps(config))
    _give_tokenizer(name, path, tokenizers)


def _talk(row):
    return [{"role": "user", "content": row["question"]}, {"role": "assistant", "content": row["answer"]}]


# What a row of each form has; `row` and `other` are rows of GSM8K.
FORMS = {
    "messages": lambda row, other: {"messages": _talk(row)},
    "alpaca": lambda row, other: {"instruction": row["question"], "input": "", "output": row["answer"]},
    "text": lambda row, other: {"text": row["question"] + "\n" + row["answer"]},
    "preference": lambda row, other: {"chosen": _talk(row), "rejected": _talk({**row, "answer": other["answer"]})},
    "hh": lambda row, other: {"prompt": row["question"], "chosen": _talk(row), "rejected": _talk({**row, "answer": other["answer"]})},
    "kto": lambda row, other: {"prompt": _talk(row)[:1], "completion": _talk(row)[1:], "label": len(row["answer"]) % 2 == 0},
    "prompts": lambda row, other: {"prompt": _talk(row)[:1], "solution": row["answer"].split("#### ")[-1]},
    "response": lambda row, other: {"query": row["question"], "response": row["answer"], "tag": "en"},
    "emoji": lambda row, other: {"question": row["question"], "query": row["question"], "answer_zh": row["answer"], "answer_en": other["answer"]},
}


def make_data(folder, name, form, gsm8k, most=ROWS):
    """The folder of a data set."""
    path = folder / name
    if path.exists():
        return
    if form == "tokens":  # two bytes a token, as nanoGPT's data/openwebtext/prepare.py writes them
        path.mkdir(parents=True)
        for split in ("train", "val"):
            (path / f"{split}.bin").write_bytes(array.array("H", (i * 7919 % 50257 for i in range(1 << 18))).tobytes())
        return
    splits = {}
    for split, count in (("train", most), ("test", TEST_ROWS)):
        rows = [json.loads(line) for line in (gsm8k / f"{split}.jsonl").read_text().splitlines()[:count]]
        splits[split] = [FORMS[form](row, rows[i - 1]) for i, row in enumerate(rows)]
    path.mkdir(parents=True)
    for split, rows in splits.items():
        (path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
