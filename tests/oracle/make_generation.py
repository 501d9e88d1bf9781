"""Greedy continuations by transformers' generate, and logits of two stacked LoRA adapters by PEFT: tests/golden/generation/.

generation.json, `greedy`: for each case of tests/golden, a prompt (the beginning of its first batch) and the 24 tokens that
generate(do_sample=False) adds, in float32 with the cache, end tokens off. Each step's best logit stands clear of the second, so that
rounding cannot decide. A prompt of phi3_longrope is longer than the original context, so that its frequencies do not change on the way
(transformers computes the cache anew where they do).

second_adapter/: another adapter for tests/golden/lora, of another rank and scale, on two modules alone. `stacked`: the logits of one
document with lora/adapter_final alone, with the second alone, and with both active, which PEFT adds up.
"""

import json
import os

import peft
import torch

import make_lora
import oracle

NEW = 24
CASES = {"untied": 7, "tied": 7, "rope_llama3": 7, "mistral_window": 7, "qwen2": 7, "qwen2_yarn": 7, "qwen3": 7, "qwen3_window": 7,
         "gemma": 7, "gemma2": 7, "gemma3": 7, "phi3": 7, "phi3_longrope": 20, "gpt2": 5,
         "mixtral": 7, "qwen3_moe": 7}
CLEAR = 2e-4


def greedy(case, length):
    model = oracle.read_model(oracle.GOLDEN / case)
    (batch, *_) = oracle.first_step(json.loads((oracle.GOLDEN / case / "batch.json").read_text()))
    prompt = torch.tensor([batch["tokens"][0][:length]])
    model.generation_config.eos_token_id = None
    out = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=NEW, pad_token_id=0,
                         return_dict_in_generate=True, output_logits=True)
    for number, logits in enumerate(out.logits):
        best, second = logits[0].topk(2).values.tolist()
        assert best - second > CLEAR, (case, number, best - second)
    tokens = out.sequences[0, length:].tolist()
    assert len(tokens) == NEW
    return {"prompt": prompt[0].tolist(), "tokens": tokens}


def second_adapter(directory):
    torch.manual_seed(77)
    model = peft.get_peft_model(oracle.read_model(oracle.GOLDEN / "lora"),
                                peft.LoraConfig(r=2, lora_alpha=5, lora_dropout=0.0, task_type="CAUSAL_LM",
                                                target_modules=["q_proj", "down_proj"]))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".lora_B." in name:
                parameter.normal_(0.0, 0.2)
    make_lora.save_adapter(model, directory)
    for file in directory.rglob("*.safetensors"):
        file.chmod(0o644)


def stacked(directory):
    base = oracle.GOLDEN / "lora"
    model = peft.PeftModel.from_pretrained(oracle.read_model(base), base / "adapter_final", adapter_name="first").eval()
    model.load_adapter(directory, adapter_name="second")
    tokens = json.loads((base / "batch.json").read_text())["steps"][0]["micro_batches"][0]["tokens"][0]
    logits = {}
    for name, active in (("first", ["first"]), ("second", ["second"]), ("both", ["first", "second"])):
        model.base_model.set_adapter(active)
        with torch.no_grad():
            logits[name] = model(torch.tensor([tokens]), use_cache=False).logits[0]
    for name in ("first", "second"):
        assert oracle.relative_error(logits[name], logits["both"]) > 1e-2
    return {"tokens": tokens} | {name: [[round(x, 7) for x in row] for row in value.tolist()] for name, value in logits.items()}


def main():
    os.chdir(oracle.ROOT)
    directory = oracle.GOLDEN / "generation"
    directory.mkdir(exist_ok=True)
    second_adapter(directory / "second_adapter")
    oracle.write_json(directory / "generation.json", {
        "versions": oracle.versions(), "greedy": {case: greedy(case, length) for case, length in CASES.items()},
        "stacked": stacked(directory / "second_adapter")})


if __name__ == "__main__":
    main()
