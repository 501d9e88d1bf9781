"""transformers' Trainer with an evaluation that computes a metric of all logits."""
from transformers import Trainer, TrainingArguments, default_data_collator

from here import args, record
from loading import load_model

record("start")
model = load_model()


def rows(count):
    ids = [[(7 * i + j) % 256 for j in range(args.length)] for i in range(count)]
    return [{"input_ids": row, "labels": row} for row in ids]


def accuracy(predicted):
    return {"accuracy": float((predicted.predictions[:, :, 0] == predicted.label_ids).mean())}


training = TrainingArguments(
    output_dir="out", max_steps=args.steps, per_device_train_batch_size=args.micro_batch, per_device_eval_batch_size=args.eval_batch, eval_strategy="steps",
    eval_steps=1, eval_accumulation_steps=args.eval_accumulation, prediction_loss_only=args.prediction_loss_only, bf16=args.amp == "bfloat16",
    gradient_checkpointing=args.gradient_checkpointing, optim={"adamw": "adamw_torch", "sgd": "sgd"}[args.optimizer], save_strategy="no", report_to="none",
    disable_tqdm=True, dataloader_pin_memory=False)
trainer = Trainer(model=model, args=training, train_dataset=rows(32), eval_dataset=rows(args.eval_rows), data_collator=default_data_collator,
                  compute_metrics=accuracy)
record("loaded")
trainer.train()
