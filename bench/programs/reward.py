"""TRL's reward model."""
from datasets import load_dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from trl import RewardConfig, RewardTrainer

name = "Qwen/Qwen2.5-0.5B-Instruct"
model = AutoModelForSequenceClassification.from_pretrained(name, num_labels=1, torch_dtype="bfloat16")
tokenizer = AutoTokenizer.from_pretrained(name)
model.config.pad_token_id = tokenizer.pad_token_id
trainer = RewardTrainer(model=model, args=RewardConfig(output_dir="out", max_steps=3, per_device_train_batch_size=2, bf16=True, report_to="none"),
                        train_dataset=load_dataset("trl-lib/ultrafeedback_binarized", split="train"), processing_class=tokenizer)
trainer.train()
