"""The recipe of a case, as somebody has it who started its script: the words of TRL's files for SFTTrainer, of TrainingArguments otherwise.

Only of scripts that train one model on rows of one length; of the others there is none."""

import json

OPTIMIZERS = {"adamw": "adamw_torch", "adamw_8bit": "adamw_bnb_8bit", "sgd": "sgd"}
ROWS = 64  # of the data set that scripts around a trainer have: no batch is larger
DEFAULT_LENGTH = 1024  # SFTConfig's max_length, which the script leaves as it is: longer rows lose their end


def _keys(case):
    s = case["settings"]
    keys = {"model_name_or_path": "model", "torch_dtype": s["dtype"], "per_device_train_batch_size": s["micro_batch"],
            "gradient_accumulation_steps": s.get("accumulation", 1), "max_length": s["length"], "optim": OPTIMIZERS[s["optimizer"]],
            "bf16": s.get("amp") == "bfloat16", "fp16": s.get("amp") == "float16", "attn_implementation": s["attention"],
            "gradient_checkpointing": s.get("gradient_checkpointing", False), "max_grad_norm": s.get("max_grad_norm", 1.0)}
    if keys["gradient_checkpointing"]:
        keys["gradient_checkpointing_kwargs"] = {"use_reentrant": False}
    if s.get("lora"):
        keys.update(use_peft=True, lora_r=s["lora"], lora_dropout=0.0, lora_target_modules="all-linear")
    if s.get("quantize_4bit"):
        keys.update(load_in_4bit=True)
    return keys


def write_recipe(case, folder):
    """The file's name, or none."""
    program = case["program"]
    if program not in ("plain_loop", "trainer", "sft") or case["settings"].get("fused_loss"):
        return None
    keys = _keys(case)
    if program == "plain_loop":
        keys["max_grad_norm"] = 0.0  # it does not clip
    else:
        keys["per_device_train_batch_size"] = min(keys["per_device_train_batch_size"], ROWS)
    if program == "sft":
        keys["dataset_name"] = "rows"
        if int(case["versions"]["trl"].split(".")[0]) >= 1:  # before, rows that are tokens already stay as they are
            keys["max_length"] = min(keys["max_length"], DEFAULT_LENGTH)
    name = "recipe.yaml" if program == "sft" else "recipe.json"
    (folder / name).write_text(json.dumps(keys, indent=1) + "\n")
    return name


def stack_of(case):
    """--stack: the versions that it ran with."""
    return ",".join(f"{name}={case['versions'][name]}" for name in ("torch", "transformers", "peft", "bitsandbytes", "trl") if case["versions"].get(name))
