"""`--synthetic`: configurations from snug's catalogue, tokenizers and rows stand in for those that are not in the local cache."""

import functools
import json
import os
import re
import sys

import snug_measure

CHAT = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
ROWS = 512
WORDS = "the quick brown fox jumps over the lazy dog and goes on its way through the old forest until the evening comes ".split()


def catalogue(name):
    """What snug's catalogue has of a model's config.json, or None."""
    path = os.path.join(snug_measure.DIRECTORY, "models.txt")
    if not os.path.exists(path):
        return None
    with open(path) as file:
        for line in file:
            names, brace, rest = line.partition("{")
            if brace and not line.startswith("#") and name in names.split():
                return json.loads(brace + rest)
    return None


def _directory_of(name):
    """A directory with the config.json that the catalogue has of `name`, or None."""
    from snug_measure import weights
    config = catalogue(name)
    if config is None:
        return None
    path = weights.stand_in_directory(name)
    with open(os.path.join(path, "config.json"), "w") as file:
        json.dump(config, file)
    return path


def prepare_configurations(module):
    kind = getattr(module, "PretrainedConfig", None) or module.PreTrainedConfig
    read = kind.get_config_dict.__func__

    @functools.wraps(read)
    def get_config_dict(cls, pretrained_model_name_or_path, **kwargs):
        try:
            return read(cls, pretrained_model_name_or_path, **dict(kwargs))
        except (OSError, ValueError):
            path = _directory_of(str(pretrained_model_name_or_path))
            if path is None:
                raise
            return read(cls, path, **{k: v for k, v in kwargs.items() if k not in ("revision", "subfolder", "_commit_hash")})
    kind.get_config_dict = classmethod(get_config_dict)


def _config(name, kwargs):
    from transformers import AutoConfig
    try:
        config = AutoConfig.from_pretrained(name, trust_remote_code=kwargs.get("trust_remote_code", False))
    except Exception:
        return {}
    return getattr(config, "text_config", config).to_dict() if not isinstance(config, dict) else config


def make_tokenizer(name, kwargs):
    """One token a byte, special tokens where the model expects them, and a vocabulary as large as the model's."""
    import tokenizers
    from transformers import PreTrainedTokenizerFast
    config = _config(name, kwargs)
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    words = [f"<|{i}|>" for i in range(max(config.get("vocab_size") or 0, 512))]
    words[3:3 + len(alphabet)] = alphabet

    def place(key, text, default):
        at = config.get(key)
        at = at[0] if isinstance(at, list) and at else at
        at = at if isinstance(at, int) and 0 <= at < len(words) else default
        words[at] = text if words[at] not in alphabet else words[at]
        return words[at]

    end = place("eos_token_id", "<|im_end|>", len(words) - 1)
    start = place("bos_token_id", "<|bos|>", len(words) - 2) if config.get("bos_token_id") != config.get("eos_token_id") else end
    model = tokenizers.models.BPE(vocab={word: i for i, word in enumerate(dict.fromkeys(words))}, merges=[])
    raw = tokenizers.Tokenizer(model)
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = tokenizers.decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token=start, eos_token=end, pad_token=end, chat_template=CHAT,
                                   **{key: kwargs[key] for key in ("padding_side", "truncation_side", "model_max_length") if key in kwargs})
    made.name_or_path = name
    return made


def prepare_tokenizers(module):
    auto = module.AutoTokenizer
    load = auto.from_pretrained.__func__

    @functools.wraps(load)
    def from_pretrained(cls, pretrained_model_name_or_path, *args, **kwargs):
        try:
            found = load(cls, pretrained_model_name_or_path, *args, **kwargs)
            if not found("the quick brown fox")["input_ids"]:  # transformers 5 makes an empty one where there are no files
                raise OSError("no vocabulary")
            return found
        except Exception:
            snug_measure.say(f"{pretrained_model_name_or_path}: its tokenizer is not here; one of a token a byte stands in")
            return make_tokenizer(str(pretrained_model_name_or_path), kwargs)
    auto.from_pretrained = classmethod(from_pretrained)


def _text(words, seed):
    return " ".join(WORDS[(seed + i) % len(WORDS)] for i in range(words))


def _message(role, words, seed):
    return {"role": role, "content": _text(words, seed)}


def _column(name, row):
    """What stands in a column of that name."""
    talk = [_message("user", 40, row), _message("assistant", 400, row + 1)]
    if name in ("messages", "conversation"):
        return talk
    if name == "conversations":
        return [{"from": "human", "value": _text(40, row)}, {"from": "gpt", "value": _text(400, row)}]
    if name == "label":
        return row % 2
    return _text({"text": 1200, "instruction": 40, "question": 60, "prompt": 60, "input": 20, "system": 10, "query": 60,
                  "chosen": 110, "rejected": 100}.get(name, 400), row)


COLUMNS = ("messages", "conversations", "text", "prompt", "completion", "chosen", "rejected", "instruction", "input", "output", "question",
           "answer", "response", "query", "system", "context", "label", "sentence", "content", "summary", "dialogue", "document")
KNOWN = {"ultrafeedback": ("prompt", "chosen", "rejected"), "hh-rlhf": ("chosen", "rejected"), "dpo": ("prompt", "chosen", "rejected"),
         "capybara": ("messages",), "ultrachat": ("messages", "prompt"), "guanaco": ("text",), "imdb": ("text", "label"),
         "alpaca": ("instruction", "input", "output", "text"), "dolly": ("instruction", "context", "response"),
         "gsm8k": ("question", "answer"), "wikitext": ("text",), "tldr": ("prompt", "completion"), "preference": ("prompt", "chosen", "rejected")}


def _columns(name):
    """The columns that a data set has: as known by its name, else those that the script speaks of, else text."""
    for word, columns in KNOWN.items():
        if word in name.lower():
            return columns
    script = next((word for word in getattr(sys, "orig_argv", sys.argv)[1:] if word.endswith(".py") and os.path.isfile(word)), None)
    if script:
        with open(script, errors="replace") as file:
            spoken = set(re.findall(r"""["'](\w+)["']""", file.read()))
        found = tuple(column for column in COLUMNS if column in spoken)
        if found:
            return found
    return ("text",)


def prepare_datasets(module):
    load = module.load_dataset

    @functools.wraps(load)
    def load_dataset(path, *args, **kwargs):
        try:
            return load(path, *args, **kwargs)
        except Exception:
            if os.path.exists(path) or path in ("json", "csv", "parquet", "text"):
                raise
        import datasets
        columns = _columns(path)
        snug_measure.say(f"{path}: its rows are not here; {ROWS} rows of {', '.join(columns)} stand in")
        rows = {column: [_column(column, row) for row in range(ROWS)] for column in columns}
        made = datasets.Dataset.from_dict(rows)
        split = kwargs.get("split")
        if kwargs.get("streaming"):
            made = made.to_iterable_dataset()
        if split is not None:
            return made
        return datasets.DatasetDict({name: made for name in ("train", "test", "validation")})
    module.load_dataset = load_dataset
    package = sys.modules.get("datasets")
    if package is not None and hasattr(package, "load_dataset"):
        package.load_dataset = load_dataset
