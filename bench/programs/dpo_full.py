"""TRL's DPO of every weight: a second model is the reference."""
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import DPOConfig, DPOTrainer

name = "HuggingFaceTB/SmolLM2-360M-Instruct"
model = AutoModelForCausalLM.from_pretrained(name)
trainer = DPOTrainer(model=model, args=DPOConfig(output_dir="out", max_steps=3, per_device_train_batch_size=2, bf16=True, gradient_checkpointing=True,
                                                 report_to="none", save_strategy="no"),
                     train_dataset=load_dataset("trl-lib/ultrafeedback_binarized", split="train"), processing_class=AutoTokenizer.from_pretrained(name))
trainer.train()
