swift sft --model meta-llama/Llama-3.1-8B --train_type lora --lora_rank 16 --target_modules all-linear \
    --dataset AI-ModelScope/alpaca-gpt4-data-en --torch_dtype bfloat16 \
    --per_device_train_batch_size 8 --gradient_accumulation_steps 2 --max_length 2048
