#!/usr/bin/env bash
# How long `snug plan` takes as a process, start to end: median of 21 runs for each model.
set -euo pipefail
snug=${SNUG:-$(dirname "$0")/../build/snug}

printf '%-32s %s\n' model 'median ms'
for model in meta-llama/Llama-3.1-8B meta-llama/Llama-3.1-70B meta-llama/Llama-3.1-405B; do
  for _ in $(seq 21); do
    begin=$(date +%s%N)
    "$snug" plan "$model" --bf16 --seq 4096 --gradient-checkpointing >/dev/null || [ $? -eq 3 ]
    echo $((($(date +%s%N) - begin) / 1000))
  done | sort -n | sed -n 11p | awk -v model="$model" '{ printf "%-32s %.1f\n", model, $1 / 1000 }'
done
