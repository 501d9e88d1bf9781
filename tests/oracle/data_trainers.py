#!/usr/bin/env python3
"""Writes tests/golden/data/trainers.json: rows, and the tokens and labels that other trainers' own preprocessing makes of them.

    pip install transformers trl llamafactory ms-swift torch datasets   # --no-deps for the two, and what they import
    DISABLE_VERSION_CHECK=1 python tests/oracle/data_trainers.py SHARED/data/tokenizers/qwen2.5

The tokenizer and chat template are Qwen2.5's, which each trainer has its own words for: TRL the checkpoint's template, LLaMA-Factory
`qwen`, ms-swift `qwen2_5` with the agent template `hermes`. Rows are drawn from a fixed seed. `learned`: begin and end of each run of labels.
"""

import json
import pathlib
import random
import sys
import types
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

for absent in ("torchaudio", "av", "librosa", "soundfile"):  # imported for media that no row here has
    sys.modules[absent] = types.ModuleType(absent)
    sys.modules[absent].__spec__ = ModuleSpec(absent, None)

# ruff: noqa: E402
import datasets
import llamafactory
import swift
import torch
import transformers
import trl
from llamafactory.data.converter import SharegptDatasetConverter
from llamafactory.data.parser import DatasetAttr
from llamafactory.data.processor.supervised import SupervisedDatasetProcessor
from llamafactory.data.template import get_template_and_fix_tokenizer
from llamafactory.hparams.data_args import DataArguments
from swift.dataset import AutoPreprocessor
from swift.template import get_template

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "data" / "trainers.json"
WORDS = ["goat", "owls", "caf\u00e9", "\U0001F600", "a \"quoted\" \\ line", "two\nlines", "\u4f60\u597d", "x = {1: [2]}", "  indented", "tail  ", "<b>", "3.14", "I'm", "\tTab"]
TOOLS = [{"name": "weather", "description": "Weather of a \"city\"", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
         {"name": "add", "description": "a + b", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}}]


def text(draw):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(1, 6)))


def answer(draw):
    return text(draw).strip()  # LLaMA-Factory's and ms-swift's own templates keep what Qwen's keeps


def arguments(draw):
    return {"city": draw.choice(["Oslo", "K\u00f8benhavn"])} if draw.random() < 0.5 else {"a": draw.randint(-9, 9), "b": draw.randint(0, 99)}


def sharegpt(draw):
    turns = []
    tools = draw.random() < 0.4
    for _ in range(draw.randint(1, 3)):
        turns.append({"from": "human", "value": text(draw)})
        if tools and draw.random() < 0.6:
            turns.append({"from": "function_call", "value": json.dumps({"name": draw.choice(TOOLS)["name"], "arguments": arguments(draw)}, ensure_ascii=False)})
            turns.append({"from": "observation", "value": json.dumps({"r": draw.randint(0, 9)})})
        turns.append({"from": "gpt", "value": answer(draw)})
    row = {"conversations": turns}
    which = draw.random()
    if which < 0.3:
        row["system"] = text(draw)
    elif which < 0.5:
        turns.insert(0, {"from": "system", "value": text(draw)})
    if tools:
        row["tools"] = json.dumps(TOOLS[:draw.randint(1, 2)], ensure_ascii=False)
    return row


def query_response(draw):
    row = {"query": text(draw), "response": answer(draw)}
    if draw.random() < 0.6:
        row["history"] = [[text(draw), answer(draw)] for _ in range(draw.randint(1, 2))]
    if draw.random() < 0.4:
        row["system"] = text(draw)
    return row


def messages(draw, learned_flags=False):
    turns = [{"role": "system", "content": text(draw)}] if draw.random() < 0.4 else []
    for _ in range(draw.randint(1, 3)):
        turns.append({"role": "user", "content": text(draw)})
        turns.append({"role": "assistant", "content": answer(draw)})
        if learned_flags and draw.random() < 0.4 and len(turns) > 2:
            turns[-1]["loss"] = False
    if learned_flags:
        turns[-1].pop("loss", None)
    return {"messages": turns}


def prompt_completion(draw):
    if draw.random() < 0.4:
        return {"prompt": text(draw), "completion": " " + answer(draw)}
    turns = messages(draw)["messages"]
    row = {"prompt": turns[:-1], "completion": turns[-1:]}
    if draw.random() < 0.3:
        row["tools"] = [{"type": "function", "function": TOOLS[0]}]
    return row


def runs(labels):
    found, begin = [], None
    for i, label in enumerate([*labels, -100]):
        if label != -100 and begin is None:
            begin = i
        elif label == -100 and begin is not None:
            found += [begin, i]
            begin = None
    return found


class LlamaFactory:
    def __init__(self, directory):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
        arguments = DataArguments(template="qwen", cutoff_len=1 << 16)
        template = get_template_and_fix_tokenizer(self.tokenizer, arguments)
        self.convert = SharegptDatasetConverter(DatasetAttr("file", dataset_name="rows", formatting="sharegpt", system="system", tools="tools"), arguments)
        self.process = SupervisedDatasetProcessor(template=template, tokenizer=self.tokenizer, processor=None, data_args=arguments)

    def __call__(self, row):
        example = self.convert({"system": "", "tools": "", **row})
        made = self.process.preprocess_dataset({name: [value] for name, value in example.items()})
        return made["input_ids"][0], made["labels"][0]


class Swift:
    def __init__(self, directory):
        tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
        tokenizer.model_info = SimpleNamespace(model_dir=directory, max_model_len=32768, task_type="causal_lm", torch_dtype=torch.float32, config=None,
                                               is_multimodal=False, rope_scaling=None)
        tokenizer.model_meta = SimpleNamespace(template="qwen2_5", candidate_templates=[], is_multimodal=False, model_type="qwen2_5", is_reward=False)
        self.template = get_template(tokenizer, template_type="qwen2_5", agent_template="hermes")
        self.template.set_mode("train")

    def __call__(self, row):
        made = self.template.encode(dict(AutoPreprocessor()(datasets.Dataset.from_list([row]))[0]))
        return made["input_ids"], made["labels"]


class Trl:
    def __init__(self, directory):
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
        config = transformers.Qwen2Config(vocab_size=len(self.tokenizer), hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
                                          num_key_value_heads=1)
        self.model = transformers.Qwen2ForCausalLM(config)

    def __call__(self, row):
        arguments = trl.SFTConfig(output_dir="/tmp/unused", max_length=None, report_to=[], use_cpu=True, bf16=False)
        trainer = trl.SFTTrainer(model=self.model, args=arguments, train_dataset=datasets.Dataset.from_list([row]), processing_class=self.tokenizer)
        made = trainer.data_collator([{name: value for name, value in trainer.train_dataset[0].items()}])
        return made["input_ids"][0].tolist(), made["labels"][0].tolist()


def main():
    directory = sys.argv[1]
    draw = random.Random(19)
    trainers = {"LLaMA-Factory": (LlamaFactory(directory), [sharegpt] * 40), "ms-swift": (Swift(directory), [query_response] * 25 + [lambda d: messages(d, True)] * 15),
                "TRL": (Trl(directory), [prompt_completion] * 30 + [lambda d: {"text": text(d)}] * 10)}
    cases = []
    for name, (encode, kinds) in trainers.items():
        for make in kinds:
            row = make(draw)
            ids, labels = encode(json.loads(json.dumps(row)))
            cases.append(json.dumps({"trainer": name, "row": row, "ids": ids, "learned": runs(labels)}, ensure_ascii=False, separators=(",", ":")))
    made_by = (f"transformers {transformers.__version__}, trl {trl.__version__}, llamafactory {llamafactory.__version__}, ms-swift {swift.__version__}")
    GOLDEN.write_text('{"made_by": %s,\n"cases": [\n%s\n]}\n' % (json.dumps(made_by), ",\n".join(cases)))
    print(len(cases), "rows,", GOLDEN.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
