"""DoRA with rows of different lengths, grouped by length, and rank-stabilized scaling."""
from datasets import load_dataset
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, DataCollatorForSeq2Seq, Trainer, TrainingArguments

name = "Qwen/Qwen2.5-1.5B"
tokenizer = AutoTokenizer.from_pretrained(name)
model = AutoModelForCausalLM.from_pretrained(name, torch_dtype="auto", device_map="cuda")
model.enable_input_require_grads()
model = get_peft_model(model, LoraConfig(r=16, use_dora=True, use_rslora=True, target_modules=["q_proj", "v_proj", "down_proj"], task_type="CAUSAL_LM"))


def encode(row):
    prompt = tokenizer(row["question"] + "\n")["input_ids"]
    answer = tokenizer(row["answer"])["input_ids"][: 40 + 7 * (len(prompt) % 50)] + [tokenizer.eos_token_id]
    return {"input_ids": prompt + answer, "labels": [-100] * len(prompt) + answer, "attention_mask": [1] * len(prompt + answer)}


data = load_dataset("openai/gsm8k", "main", split="train").map(encode, remove_columns=["question", "answer"])
Trainer(model=model, train_dataset=data, data_collator=DataCollatorForSeq2Seq(tokenizer, padding=True, label_pad_token_id=-100),
        args=TrainingArguments(output_dir="out", max_steps=3, per_device_train_batch_size=4, bf16=True, gradient_checkpointing=True,
                               gradient_checkpointing_kwargs={"use_reentrant": False}, optim="adamw_torch_fused", report_to="none")).train()
