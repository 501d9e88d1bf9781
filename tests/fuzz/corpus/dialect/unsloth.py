pfrom unsloth import FastLanguageModel
n = 2 * 1024
model, tokenizer = FastLanguageModel.from_pretrained("unsloth/gemma-2-2b", max_seq_length = n, load_in_4bit = True)
model = FastLanguageModel.get_peft_model(model, r = 16, target_modules = ["q_proj"], use_gradient_checkpointing = "unsloth")
trainer = SFTTrainer(model = model, args = TrainingArguments(per_device_train_batch_size = 2, gradient_accumulation_steps = 4,
    bf16 = is_bfloat16_supported(), optim = "adamw_8bit", **{"seed": 1}))
