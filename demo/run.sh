#!/usr/bin/env bash
# The main job on the bundled tiny model: plan, fine-tune within a memory budget, evaluate on held-out rows before and after.
#   demo/run.sh [OUTPUT_DIRECTORY]     SEED=2 demo/run.sh: other data and other random choices
set -euo pipefail
cd "$(dirname "$0")/.."

snug=${SNUG:-build/snug}
seed=${SEED:-1}
output=${1:-$(mktemp -d "${TMPDIR:-/tmp}/snug-demo.XXXXXX")}
budget=48MiB
export OMP_WAIT_POLICY=passive  # threads that wait leave the core to others

if [ -t 1 ]; then bold=$'\033[1m' plain=$'\033[0m'; else bold="" plain=""; fi
step() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }

narrow() { stdbuf -oL fold -s -w 80; }

mkdir -p "$output"
python3 demo/make_corpus.py task --rows 6000 --seed "$seed" >"$output/train.jsonl"
python3 demo/make_corpus.py held-out --rows 300 --seed "$seed" >"$output/held_out.jsonl"

common=(--data "$output/train.jsonl" --eval-data "$output/held_out.jsonl" --eval-on-start --batch 8 --seq 128 --threads 2 --memory "$budget")
lora=(--method lora --lora-r 16 --lora-alpha 32 --lora-target-modules all-linear)

step "Will it fit in $budget? (snug plan)"
refused=0
"$snug" plan demo/model "${common[@]}" "${lora[@]}" >"$output/refused.txt" || refused=$?
head -n 2 "$output/refused.txt" | narrow
[ "$refused" -eq 3 ] || { echo "demo failed: snug plan answered with exit code $refused instead of 3" >&2; exit 1; }

step "With that change? (snug plan --gradient-checkpointing true)"
lora+=(--gradient-checkpointing true)
"$snug" plan demo/model "${common[@]}" "${lora[@]}" | sed '/^largest at the peak/,/^$/d'
"$snug" plan demo/model "${common[@]}" "${lora[@]}" --json >"$output/plan.json"

step "Train, in exactly that memory (snug train)"
"$snug" train demo/model "${common[@]}" "${lora[@]}" --lr 3e-3 --lr-scheduler-type cosine --warmup-steps 10 --max-steps 800 \
  --save-steps 0 --seed "$seed" --output-dir "$output/adapter" --overwrite-output-dir 2>&1 >"$output/train.txt" |
  sed -u -E '/^step/ { /^step [0-9]*(00|50)\//!d; s/  grad norm .*  lr [^ ]+//; }' | narrow

step "What came of it"
python3 demo/summary.py "$output/adapter" "$output/plan.json" "$output/held_out.jsonl"
