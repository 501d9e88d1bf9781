"""TRL's SFTTrainer on rows that are packed to one length."""
from datasets import Dataset
from transformers import AutoTokenizer
from trl import SFTConfig, SFTTrainer

from here import args, record
from loading import load_model

record("start")
model = load_model()
tokenizer = AutoTokenizer.from_pretrained("model")
tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
rows = Dataset.from_dict({"input_ids": [[(i + j) % 256 for j in range(args.length)] for i in range(64)]})
training = SFTConfig(
    output_dir="out", max_steps=args.steps, per_device_train_batch_size=args.micro_batch, gradient_accumulation_steps=args.accumulation,
    optim={"adamw": "adamw_torch", "adamw_8bit": "adamw_bnb_8bit", "sgd": "sgd"}[args.optimizer], bf16=args.amp == "bfloat16", fp16=args.amp == "float16",
    gradient_checkpointing=args.gradient_checkpointing, gradient_checkpointing_kwargs={"use_reentrant": False}, logging_steps=1, save_strategy="no",
    report_to="none", disable_tqdm=True, dataloader_pin_memory=False)
trainer = SFTTrainer(model=model, args=training, train_dataset=rows, processing_class=tokenizer)
record("loaded")
trainer.train()
