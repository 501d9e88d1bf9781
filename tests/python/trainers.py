"""Runs as people write them: each a Python script that makes a trainer, which is executed and, as a file, is a recipe too.

Sizes are those of the demo's model, in `MODEL`; on a machine without a GPU a script is executed with `use_cpu`.
"""

import importlib.metadata
import pathlib

MODEL = str(pathlib.Path(__file__).resolve().parents[2] / "demo" / "model")
STACK = ",".join(
    f"{name}={importlib.metadata.version(name).partition('+')[0]}"
    for name in ("torch", "transformers", "peft", "bitsandbytes", "trl")
)
LENGTH = 96  # tokens of the longest row that plain Trainers get

PRELUDE = f"""
import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, Trainer, TrainingArguments
from trl import SFTConfig, SFTTrainer

tokens = Dataset.from_dict({{"input_ids": [[1] * {LENGTH}, [2] * 40], "labels": [[1] * {LENGTH}, [2] * 40]}})
texts = Dataset.from_dict({{"text": ["one two three"] * 4}})
tokenizer = AutoTokenizer.from_pretrained("{MODEL}")
"""

FULL = f'model = AutoModelForCausalLM.from_pretrained("{MODEL}", dtype=torch.float32)\n'
HALF = f'model = AutoModelForCausalLM.from_pretrained("{MODEL}", dtype=torch.bfloat16)\n'
FOUR_BIT = f"""
bits = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16, bnb_4bit_use_double_quant=True)
model = AutoModelForCausalLM.from_pretrained("{MODEL}", dtype=torch.bfloat16, quantization_config=bits)
"""
EIGHT_BIT = f"""
bits = BitsAndBytesConfig(load_in_8bit=True)
model = AutoModelForCausalLM.from_pretrained("{MODEL}", dtype=torch.bfloat16, quantization_config=bits)
"""
ADAPTER = 'model = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, task_type="CAUSAL_LM"))\n'
PREPARED = "model = prepare_model_for_kbit_training(model)\n"


def plain(arguments, more=""):
    return (
        f'args = TrainingArguments("out", {arguments})\ntrainer = Trainer(model=model, args=args, train_dataset=tokens{more})\n'
    )


def sft(arguments, more=""):
    return (
        f'args = SFTConfig("out", {arguments})\ntrainer = SFTTrainer(model=model, args=args, train_dataset=texts,'
        f" processing_class=tokenizer{more})\n"
    )


# name: the script, and what the plan of the file is told beside it, for a script has no word for that
SCRIPTS = {
    "full, autocast": (FULL + plain("per_device_train_batch_size=2, bf16=True"), {}),
    "full, fp32": (FULL + plain("per_device_train_batch_size=4"), {}),
    "full, bf16 weights, checkpoints": (
        HALF + plain('per_device_train_batch_size=2, gradient_checkpointing=True, optim="adamw_torch"'),
        {},
    ),
    "full, adafactor": (FULL + plain('per_device_train_batch_size=2, optim="adafactor", gradient_accumulation_steps=2'), {}),
    "full, re-entrant": (
        FULL + plain('bf16=True, gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": True}'),
        {"gradient_checkpointing_kwargs": "use_reentrant=true"},
    ),
    "full, eager attention": (
        f'model = AutoModelForCausalLM.from_pretrained("{MODEL}", dtype=torch.float32, attn_implementation="eager")\n'
        + plain("per_device_train_batch_size=2"),
        {},
    ),
    "LoRA, sgd, accumulation": (
        HALF + ADAPTER + plain('per_device_train_batch_size=2, gradient_accumulation_steps=4, optim="sgd"'),
        {},
    ),
    "LoRA, adamw_8bit": (HALF + ADAPTER + plain('per_device_train_batch_size=2, optim="adamw_8bit", max_grad_norm=0.3'), {}),
    "LoRA, evaluation": (
        HALF
        + ADAPTER
        + plain('per_device_train_batch_size=2, eval_strategy="steps", per_device_eval_batch_size=4', ", eval_dataset=tokens"),
        {"eval_rows": 2},
    ),
    "LoRA, metrics": (
        HALF
        + ADAPTER
        + plain(
            'per_device_train_batch_size=2, eval_strategy="epoch", per_device_eval_batch_size=1',
            ", eval_dataset=tokens, compute_metrics=len",
        ),
        {"eval_rows": 2, "compute_metrics": True},
    ),
    "QLoRA, paged": (
        FOUR_BIT
        + PREPARED
        + ADAPTER
        + plain('per_device_train_batch_size=2, bf16=True, optim="paged_adamw_8bit", gradient_checkpointing=True'),
        {},
    ),
    "QLoRA, bare": (
        FOUR_BIT + ADAPTER + plain("per_device_train_batch_size=2, bf16=True"),
        {"prepare_model_for_kbit_training": False},
    ),
    "LoRA on int8": (
        EIGHT_BIT + PREPARED + ADAPTER + plain("per_device_train_batch_size=2, bf16=True, gradient_checkpointing=True"),
        {},
    ),
    "SFT, full": (FULL + sft("per_device_train_batch_size=2, max_length=64"), {}),
    "SFT, LoRA": (
        HALF
        + sft(
            "per_device_train_batch_size=2, max_length=64",
            ', peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")',
        ),
        {},
    ),
    "SFT, LoRA, no checkpoints": (
        HALF
        + sft(
            'max_length=128, gradient_checkpointing=False, gradient_accumulation_steps=2, optim="adamw_torch"',
            ', peft_config=LoraConfig(target_modules=["q_proj", "o_proj"])',
        ),
        {},
    ),
    "SFT, DoRA": (
        HALF + sft("max_length=128", ", peft_config=LoraConfig(r=8, lora_dropout=0.05, use_dora=True, use_rslora=True)"),
        {},
    ),
    "SFT, QLoRA": (
        FOUR_BIT
        + sft(
            'per_device_train_batch_size=1, max_length=64, optim="paged_adamw_8bit"',
            ', peft_config=LoraConfig(r=8, target_modules="all-linear")',
        ),
        {"prepare_model_for_kbit_training": False},
    ),
    "SFT, packing": (HALF + sft("max_length=64, packing=True", ", peft_config=LoraConfig(r=8)"), {}),
    "SFT, full, fp32": (FULL + sft("max_length=512, bf16=False, per_device_train_batch_size=1"), {}),
}


def execute(script, path="script.py"):
    """The trainer that a script makes."""
    space = {}
    exec(compile((PRELUDE + script).replace('"out"', '"out", use_cpu=True, report_to="none"'), path, "exec"), space)
    return space["trainer"]
