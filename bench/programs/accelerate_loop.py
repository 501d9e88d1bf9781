"""A loop with accelerate: accumulation, clipping, a schedule, mixed precision."""
import torch
from accelerate import Accelerator
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, get_linear_schedule_with_warmup

accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
name = "Qwen/Qwen2.5-0.5B"
tokenizer = AutoTokenizer.from_pretrained(name)
model = AutoModelForCausalLM.from_pretrained(name)
model.gradient_checkpointing_enable()
data = load_dataset("tatsu-lab/alpaca", split="train[:200]")


def collate(rows):
    texts = [row["instruction"] + "\n" + row["output"] for row in rows]
    batch = tokenizer(texts, padding=True, truncation=True, max_length=512, return_tensors="pt")
    batch["labels"] = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    return batch


loader = DataLoader(data, batch_size=4, shuffle=True, collate_fn=collate, num_workers=1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
schedule = get_linear_schedule_with_warmup(optimizer, 2, 10)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
model.train()
for index, batch in enumerate(loader):
    with accelerator.accumulate(model):
        loss = model(**batch).loss
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    if index == 7:
        break
print("peak", torch.cuda.max_memory_allocated())
accelerator.unwrap_model(model).save_pretrained("out", save_function=accelerator.save)
