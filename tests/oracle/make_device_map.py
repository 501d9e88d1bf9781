#!/usr/bin/env python3
"""accelerate's infer_auto_device_map for small models under many max_memory: tests/golden/device_map.json.

Weights in bf16 on the meta device, no layer split, as transformers calls it for device_map="auto". What is compared, and what
differs on purpose, stands at the top of tests/plan/device_map_oracle_test.cpp. Run: python tests/oracle/make_device_map.py"""

import json
import pathlib
import random

import accelerate
import torch
import transformers
from accelerate import infer_auto_device_map, init_empty_weights
from transformers import AutoConfig, AutoModelForCausalLM

OUT = pathlib.Path(__file__).resolve().parent.parent / "golden" / "device_map.json"
LLAMA = dict(hidden_size=256, intermediate_size=704, num_hidden_layers=12, num_attention_heads=4, num_key_value_heads=2,
             vocab_size=4096, max_position_embeddings=512, torch_dtype="bfloat16")
MODELS = {
    "llama": dict(model_type="llama", tie_word_embeddings=False, **LLAMA),
    "llama_small_vocab": dict(model_type="llama", tie_word_embeddings=False, **{**LLAMA, "vocab_size": 512}),
    "mistral": dict(model_type="mistral", tie_word_embeddings=False, sliding_window=None, **LLAMA),
    "llama_tied": dict(model_type="llama", tie_word_embeddings=True, **LLAMA),
    "gpt2": dict(model_type="gpt2", n_embd=256, n_layer=8, n_head=4, n_positions=512, vocab_size=2048, bos_token_id=0, eos_token_id=0, tie_word_embeddings=True),
}
SHARES = [  # of the weights, for each device in order
    {"0": 0.7, "cpu": 4}, {"0": 0.5, "cpu": 4}, {"0": 0.4, "1": 0.3, "cpu": 4}, {"0": 0.45, "1": 0.1, "2": 0.2, "cpu": 4},
    {"0": 0.3, "cpu": 0.5}, {"0": 2.0}, {"0": 0.6, "1": 2.0}, {"0": 0.1, "1": 0.6, "cpu": 4}]


def sizes_of(total, name):
    rng = random.Random(name)
    cases = [dict(case) for case in SHARES]
    cases += [{"0": rng.uniform(0.3, 0.8), "1": rng.uniform(0.1, 0.5), "cpu": 4} for _ in range(6)]
    return [{device: int(share * total) for device, share in case.items()} for case in cases]


def parts_of(model):
    """The modules that are not split: layers, and what has parameters beside them."""
    layers = [n for n, m in model.named_modules() if type(m).__name__ in model._no_split_modules]
    others = [n for n, m in model.named_modules() if any(True for _ in m.parameters(recurse=False))]
    return layers + [n for n in others if not any(n.startswith(layer + ".") for layer in layers)]


def device_of(part, device_map):
    """accelerate names a module that was not split instead of its parts."""
    return str(next(d for name, d in device_map.items() if (part + ".").startswith(name + ".")))


def main():
    result = {"versions": {"accelerate": accelerate.__version__, "transformers": transformers.__version__,
                           "torch": torch.__version__}, "models": []}
    for name, config in MODELS.items():
        fields = dict(config)
        with init_empty_weights():
            model = AutoModelForCausalLM.from_config(AutoConfig.for_model(fields.pop("model_type"), **fields), dtype=torch.bfloat16)
        model.tie_weights()
        total = sum(p.numel() for p in model.parameters()) * 2
        cases = []
        for memory in sizes_of(total, name):
            limits = {int(d) if d.isdigit() else d: n for d, n in memory.items()}
            device_map = infer_auto_device_map(model, max_memory=limits, no_split_module_classes=list(model._no_split_modules),
                                               dtype=torch.bfloat16, clean_result=False)
            devices = {part: device_of(part, device_map) for part in parts_of(model)}
            cases.append({"max_memory": memory, "map": devices})
        result["models"].append({"name": name, "config": {**json.loads(model.config.to_json_string(use_diff=False)),
                                                          "architectures": [type(model).__name__]}, "bytes": total, "cases": cases})
    OUT.write_text(json.dumps(result, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
