#!/usr/bin/env bash
# Savings as predicted and as measured: for each change, the difference of two plans beside the difference of two real runs' peaks, as the
# operating system counts them (VmHWM). SmolLM2-135M's shape, random weights, one step each.
set -euo pipefail
cd "$(dirname "$0")/.."
snug=$PWD/build/snug
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_WAIT_POLICY=passive XDG_CACHE_HOME=$work/cache
cd "$work"

"$snug" init HuggingFaceTB/SmolLM2-135M --output-dir model --tokenizer "$OLDPWD/demo/model" >/dev/null
python3 -c 'import json
for i in range(400): print(json.dumps({"text": f"Row {i} " + "of words that fill the sequence " * 40}))' >data.jsonl

run() { # planned and measured peak of one step with these keys
  rm -rf out
  "$snug" train model --data data.jsonl --threads 2 --max-steps 1 --save-steps 0 --output-dir out "$@" 2>/dev/null |
    sed -n 's/^planned peak \([0-9]*\) bytes, measured \([0-9]*\) bytes.*/\1 \2/p'
}

compare() { # base keys -- change
  local base=() change=()
  while [ "$1" != -- ]; do base+=("$1") && shift; done
  shift
  change=("$@")
  if [ "${base[*]}" != "${last-}" ]; then before=$(run "${base[@]}") last="${base[*]}"; fi
  printf '%s %s %s | %s\n' "$before" "$(run "${base[@]}" "${change[@]}")" "${base[*]}" "${change[*]}"
}

{
  lora=(--method lora --seq 512 --batch 2)
  half=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14
  compare "${lora[@]}" -- --gradient-checkpointing true
  compare "${lora[@]}" -- --gradient-checkpointing true --checkpoint-layers $half
  compare "${lora[@]}" -- --batch 1 --accum 2
  compare "${lora[@]}" -- --bf16 true
  compare "${lora[@]}" -- --max-length 256
  compare "${lora[@]}" -- --max-length 128
  compare "${lora[@]}" -- --load-in-4bit true
  compare "${lora[@]}" -- --load-in-8bit true
  wide=(--method lora --seq 512 --lora-r 256 --lora-target-modules all-linear)
  compare "${wide[@]}" -- --lora-r 128
  compare "${wide[@]}" -- --lora-target-modules q_proj,v_proj
  compare "${wide[@]}" -- --optim adamw_8bit
  compare "${wide[@]}" -- --optim paged_adamw_32bit
  compare "${wide[@]}" --use-dora true -- --use-dora false
  full=(--method full --seq 128)
  for optim in adamw_8bit adamw_bf16_states lion_32bit lion_8bit adafactor sgd paged_adamw_32bit paged_adamw_8bit; do
    compare "${full[@]}" -- --optim $optim
  done
  compare "${full[@]}" -- --method lora
  compare "${full[@]}" --max-grad-norm 0 -- --optimizer-in-bwd true
  compare "${full[@]}" --bf16 true -- --master-weights false
} | awk '{
    predicted = ($1 - $3) / 1048576; measured = ($2 - $4) / 1048576; text = $0; sub(/^([0-9]+ ){4}/, "", text)
    error = 100 * (measured - predicted) / predicted; n++; if (error < 0) errors[n] = -error; else errors[n] = error
    if (errors[n] > worst) worst = errors[n]
    printf "%8.1f MiB %8.1f MiB %+6.2f %%  %s\n", predicted, measured, error, text
  } END { printf "%d changes, worst error %.2f %%\n", n, worst }' | { printf '%12s %12s %8s  %s\n' predicted measured error 'recipe | change' && cat; }
