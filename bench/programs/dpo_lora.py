"""TRL's DPO with LoRA: the adapter switched off is the reference."""
from datasets import load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import DPOConfig, DPOTrainer

name = "Qwen/Qwen2.5-0.5B"
model = AutoModelForCausalLM.from_pretrained(name, torch_dtype="bfloat16")
tokenizer = AutoTokenizer.from_pretrained(name)
trainer = DPOTrainer(model=model, args=DPOConfig(output_dir="out", max_steps=3, per_device_train_batch_size=2, bf16=True, report_to="none"),
                     train_dataset=load_dataset("trl-lib/ultrafeedback_binarized", split="train"), processing_class=tokenizer,
                     peft_config=LoraConfig(r=8, target_modules="all-linear", task_type="CAUSAL_LM"))
trainer.train()
