"""transformers' Trainer: full fine-tuning with evaluation and checkpoints, rows cut to one length."""
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments, default_data_collator

name = "HuggingFaceTB/SmolLM2-135M"
tokenizer = AutoTokenizer.from_pretrained(name)
model = AutoModelForCausalLM.from_pretrained(name)
raw = load_dataset("Salesforce/wikitext", "wikitext-2-raw-v1")


def group(rows, block=512):
    ids = sum(tokenizer(rows["text"])["input_ids"], [])
    blocks = [ids[i:i + block] for i in range(0, len(ids) - block + 1, block)]
    return {"input_ids": blocks, "attention_mask": [[1] * block for _ in blocks], "labels": [list(one) for one in blocks]}


data = raw.map(group, batched=True, batch_size=64, remove_columns=raw["train"].column_names)
trainer = Trainer(model=model, train_dataset=data["train"], eval_dataset=data["validation"].select(range(16)), data_collator=default_data_collator,
                  args=TrainingArguments(output_dir="out", max_steps=4, per_device_train_batch_size=8, per_device_eval_batch_size=8, bf16=True,
                                         eval_strategy="steps", eval_steps=2, save_steps=2, logging_steps=1, report_to="none"))
trainer.train()
print(trainer.evaluate())
trainer.save_model()
