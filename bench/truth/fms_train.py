#!/usr/bin/env python3
"""One configuration of fms-acceleration's published benchmarks (its scripts/benchmarks), as its users' stack builds it: transformers'
Trainer, PEFT, bitsandbytes; rows of one length, AdamW, checkpointing, flash attention. Run by fms_rows.py under `snug measure`."""

import argparse
import re
import sys

import torch
import transformers


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--model", required=True, help="directory with a config.json")
    p.add_argument("--method", choices=["full", "lora", "qlora"], required=True)
    p.add_argument("--framework", required=True, help="the benchmark's framework_config")
    p.add_argument("--batch", type=int, required=True)
    p.add_argument("--seq", type=int, default=4096)
    p.add_argument("--steps", type=int, default=2)
    p.add_argument("--amp", action="store_true")
    p.add_argument("--fms", help="a checkout of fms-acceleration, for its fused kernels")
    p.add_argument("--output", required=True)
    return p.parse_args()


def load(a):
    options = {}
    if a.method == "qlora":
        options["quantization_config"] = transformers.BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_use_double_quant=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)
        options["device_map"] = {"": 0}
    model = transformers.AutoModelForCausalLM.from_pretrained(a.model, torch_dtype=torch.bfloat16, low_cpu_mem_usage=True,
                                                              attn_implementation="flash_attention_2", **options)
    model.config.use_cache = False
    return model if a.method == "qlora" else model.to("cuda:0")


def adapt(a, model):
    """LoRA on the four projections of attention; its baseline prepares the quantized model as TRL does, its own plugin less."""
    import peft
    if a.framework == "baseline-peft-bnb":
        model = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=True)
    else:
        model.requires_grad_(False)
        model.enable_input_require_grads()
    model = peft.get_peft_model(model, peft.LoraConfig(r=16, lora_alpha=16, lora_dropout=0.1, task_type="CAUSAL_LM",
                                                       target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]))
    if a.framework == "baseline-peft-bnb":  # trl.trainer.utils.peft_module_casting_to_bf16
        for name, module in model.named_modules():
            if "norm" not in name and re.search("lm_head|embed_tokens", name) and hasattr(module, "weight"):
                module.to(torch.bfloat16)
    return model


def fuse(a, model):
    for folder in ("framework", "fused-ops-and-kernels"):
        sys.path.insert(0, f"{a.fms}/plugins/{folder}/src")
    from fms_acceleration.model_patcher import patch_model
    from fms_acceleration_foak.framework_plugin_fast_kernels import register_foak_model_patch_rules
    loss = {"fused-lce"} if a.framework.endswith("liger") else {"cross-ent", "custom-loss"}
    quantized = {"qkvo", "mlp"} if a.method == "qlora" else set()
    register_foak_model_patch_rules("bitsandbytes", loss | {"rms", "rope"} | quantized, model.config)
    patch_model(model)


def main():
    a = arguments()
    model = load(a)
    if a.method != "full":
        model = adapt(a, model)
    if "foak" in a.framework:
        fuse(a, model)
    ids = torch.zeros(a.seq, dtype=torch.long)
    rows = [{"input_ids": ids, "attention_mask": ids + 1, "labels": ids}] * (a.batch * a.steps)
    options = transformers.TrainingArguments(
        output_dir=a.output, per_device_train_batch_size=a.batch, max_steps=a.steps, report_to=[], save_strategy="no", logging_steps=10,
        weight_decay=0.01, adam_epsilon=1e-4, warmup_steps=10, disable_tqdm=True, bf16=a.amp, gradient_checkpointing=True,
        skip_memory_metrics=False)  # as published: it also empties the cache before the first step
    transformers.Trainer(model=model, args=options, train_dataset=rows).train()


if __name__ == "__main__":
    main()
