"""The QLoRA recipe: NF4 with double quantization, paged AdamW, checkpointing."""
import torch
from datasets import load_dataset
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, DataCollatorForLanguageModeling, Trainer, TrainingArguments

name = "mistralai/Mistral-7B-v0.1"
model = AutoModelForCausalLM.from_pretrained(
    name, device_map="auto", quantization_config=BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_use_double_quant=True,
                                                                    bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16))
model = prepare_model_for_kbit_training(model)
model = get_peft_model(model, LoraConfig(r=8, lora_alpha=32, target_modules=["q_proj", "v_proj"], lora_dropout=0.05, task_type="CAUSAL_LM"))
model.print_trainable_parameters()
tokenizer = AutoTokenizer.from_pretrained(name)
tokenizer.pad_token = tokenizer.eos_token
data = load_dataset("Abirate/english_quotes")
data = data.map(lambda rows: tokenizer(rows["text"], truncation=True, max_length=512), batched=True)
trainer = Trainer(model=model, train_dataset=data["train"].remove_columns("text"),
                  data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
                  args=TrainingArguments(output_dir="out", per_device_train_batch_size=4, gradient_accumulation_steps=4, warmup_steps=2, max_steps=3,
                                         learning_rate=2e-4, fp16=True, logging_steps=1, optim="paged_adamw_8bit", report_to="none"))
model.config.use_cache = False
trainer.train()
