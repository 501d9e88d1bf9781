#!/usr/bin/env bash
# Predicted beside measured: `snug probe`, then for 32 recipes the step time that `snug plan` tells and the one that
# build/bench/step takes (median of its steps, random weights and tokens). Keeps its receipts in a directory of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
export XDG_CACHE_HOME=$(mktemp -d) OMP_WAIT_POLICY=passive
trap 'rm -rf "$XDG_CACHE_HOME"' EXIT
build/snug probe | tail -2 | head -1

smol=HuggingFaceTB/SmolLM2-135M larger=HuggingFaceTB/SmolLM2-360M qwen=Qwen/Qwen2.5-0.5B llama=meta-llama/Llama-3.2-1B
recipes=()
for model in $smol $larger $qwen; do
  for length in 256 512; do
    recipes+=("$model --method lora --bf16 --seq $length" "$model --method full --bf16 --seq $length")
  done
  recipes+=("$model --method qlora --bf16 --seq 512 --gradient-checkpointing"
            "$model --method lora --seq 256 --lora-r 16 --lora-target-modules all-linear"
            "$model --method lora --bf16 --seq 512 --batch 2 --lora-r 64 --lora-target-modules all-linear")
done
recipes+=("$smol --method full --seq 256" "$smol --method full --bf16 --optim adamw_8bit --seq 1024"
          "$smol --method full --bf16 --optim adafactor --seq 256" "$smol --method lora --bf16 --lora-dropout 0.05 --seq 512"
          "$smol --method full --bf16 --optim lion_32bit --seq 512 --accum 2"
          "$smol --method lora --bf16 --seq 2048" "$larger --method full --bf16 --optim adamw_8bit --seq 512"
          "$qwen --method qlora --seq 256" "$llama --method lora --bf16 --seq 256" "$llama --method qlora --bf16 --seq 512"
          "$llama --method lora --bf16 --seq 512 --gradient-checkpointing")

printf '%9s %9s %7s  %s\n' predicted measured error recipe
for recipe in "${recipes[@]}"; do
  # shellcheck disable=SC2086
  predicted=$(build/snug plan $recipe --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["cost"]["step_seconds"])')
  # shellcheck disable=SC2086
  measured=$(build/bench/step $recipe --steps 2 | sed -n 's/^\([0-9.]*\) s a step.*/\1/p')
  awk -v p="$predicted" -v m="$measured" -v r="$recipe" 'BEGIN { printf "%8.3fs %8.3fs %+6.1f%%  %s\n", p, m, 100 * (p - m) / m, r }'
done | tee "$XDG_CACHE_HOME/lines"
awk '{ e = $3 + 0; if (e < 0) e = -e; print e }' "$XDG_CACHE_HOME/lines" | sort -n |
  awk '{ all[NR] = $1 } END { printf "median error %.1f %%, 90th percentile %.1f %%, %d recipes\n", (all[int((NR + 1) / 2)] + all[int(NR / 2) + 1]) / 2, all[int(0.9 * NR)], NR }'
