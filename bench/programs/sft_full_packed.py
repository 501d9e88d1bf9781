"""TRL, full fine-tuning in bf16 with packing and 8-bit AdamW."""
import torch
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

name = "meta-llama/Llama-3.2-1B"
model = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.bfloat16, attn_implementation="sdpa")
tokenizer = AutoTokenizer.from_pretrained(name)
tokenizer.pad_token = tokenizer.eos_token
args = SFTConfig(output_dir="out", max_steps=3, per_device_train_batch_size=1, gradient_accumulation_steps=2, packing=True, bf16=True,
                 gradient_checkpointing=True, optim="adamw_bnb_8bit", dataset_text_field="text", report_to="none", save_strategy="no")
trainer = SFTTrainer(model=model, args=args, train_dataset=load_dataset("stanfordnlp/imdb", split="train"), processing_class=tokenizer)
trainer.train()
