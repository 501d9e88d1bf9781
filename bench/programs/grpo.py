"""TRL's GRPO: answers are sampled while training."""
from datasets import load_dataset
from peft import LoraConfig
from trl import GRPOConfig, GRPOTrainer

trainer = GRPOTrainer(
    model="Qwen/Qwen2.5-0.5B-Instruct", train_dataset=load_dataset("trl-lib/tldr", split="train"),
    reward_funcs=lambda completions, **_: [float(len(set(str(one)))) for one in completions],
    args=GRPOConfig(output_dir="out", max_steps=2, per_device_train_batch_size=4, num_generations=4, max_completion_length=16, bf16=True, report_to="none"),
    peft_config=LoraConfig(r=8, target_modules="all-linear", task_type="CAUSAL_LM"))
trainer.train()
