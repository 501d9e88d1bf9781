sA=1
B=(--lora_rank 8 --fp16)
CUDA_VISIBLE_DEVICES=0,1 swift sft --model "a/$A" \
  --train_type lora "${B[@]}" --max_length=64 --dataset 'x#5' y \
  --gradient_checkpointing --deepspeed zero2 2>&1 | tee log
cat <<EOF
x
EOF
