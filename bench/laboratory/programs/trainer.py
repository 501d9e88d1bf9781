"""transformers' Trainer on rows of one length."""
import torch
from transformers import Trainer, TrainingArguments, default_data_collator

from chunked import chunked_loss
from here import args, record
from loading import load_model

record("start")
model = load_model()
vocabulary = model.get_input_embeddings().weight.shape[0]


def row(i):
    ids = [(7 * i + j) % vocabulary for j in range(args.length)]
    return {"input_ids": ids, "labels": ids}


class FusedLossTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **_):
        return chunked_loss(self.accelerator.unwrap_model(model), inputs["input_ids"])


training = TrainingArguments(
    output_dir="out", max_steps=args.steps, per_device_train_batch_size=args.micro_batch, gradient_accumulation_steps=args.accumulation,
    optim={"adamw": "adamw_torch", "adamw_8bit": "adamw_bnb_8bit", "sgd": "sgd"}[args.optimizer], bf16=args.amp == "bfloat16", fp16=args.amp == "float16",
    gradient_checkpointing=args.gradient_checkpointing, gradient_checkpointing_kwargs={"use_reentrant": False}, logging_steps=1, save_strategy="no",
    report_to="none", disable_tqdm=True, dataloader_pin_memory=False, max_grad_norm=args.max_grad_norm)
kind = FusedLossTrainer if args.fused_loss else Trainer
trainer = kind(model=model, args=training, train_dataset=[row(i) for i in range(64)], data_collator=default_data_collator)
record("loaded")
trainer.train()
