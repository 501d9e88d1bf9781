"""Writes tests/golden/formats: small files made by the reference libraries, which our readers must take and our writers must
reproduce byte for byte. Run: python tests/oracle/formats_golden.py (needs torch, safetensors, transformers, peft)."""

import json
import pathlib
import shutil

import peft
import safetensors
import torch
import transformers
from safetensors.torch import save_file

OUT = pathlib.Path(__file__).resolve().parent.parent / "golden" / "formats"


def mixed():
    """One file with every dtype that we compute with; values count up from the tensor's index."""
    kinds = [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int32, torch.int64, torch.uint8]
    tensors = {}
    for i, kind in enumerate(kinds):
        name = "t." + str(kind).removeprefix("torch.")
        tensors[name] = (torch.arange(6) + i).reshape(2, 3).to(kind)
    tensors["scalar"] = torch.tensor(2.5)
    tensors["empty"] = torch.zeros(0, 4)
    tensors['quote " and \u00e9'] = torch.ones(1)
    save_file(tensors, OUT / "mixed.safetensors", metadata={"format": "pt"})


def tiny_llama(**overrides):
    config = transformers.LlamaConfig(
        hidden_size=8, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, vocab_size=12,
        max_position_embeddings=16384, eos_token_id=[2, 3], dtype=torch.bfloat16,
        rope_parameters={"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}, **overrides)
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(config).to(torch.bfloat16)


def checkpoints():
    tiny_llama().save_pretrained(OUT / "sharded", max_shard_size="1KB")
    tiny_llama(tie_word_embeddings=True).save_pretrained(OUT / "tied")
    for extra in OUT.glob("*/generation_config.json"):
        extra.unlink()


def adapter():
    config = peft.LoraConfig(task_type="CAUSAL_LM", r=2, lora_alpha=16, target_modules=["q_proj", "down_proj", "embed_tokens"],
                             modules_to_save=["lm_head"], base_model_name_or_path="tiny")
    model = peft.get_peft_model(tiny_llama(), config)
    model.save_pretrained(OUT / "adapter", save_embedding_layers=False)
    (OUT / "adapter" / "README.md").unlink(missing_ok=True)
    path = OUT / "adapter" / "adapter_config.json"
    text = json.loads(path.read_text())
    text["target_modules"].sort()  # a set in PEFT, written in no fixed order
    path.write_text(json.dumps(text, indent=2, sort_keys=True) + "\n")


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    mixed()
    checkpoints()
    adapter()
    versions = {m.__name__: m.__version__ for m in (torch, safetensors, transformers, peft)}
    (OUT / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")


if __name__ == "__main__":
    main()
