saccelerate launch --num_processes 2 sft.py --model_name_or_path a/b --dataset_name d --use_peft --optim ${O:-adamw_8bit}
