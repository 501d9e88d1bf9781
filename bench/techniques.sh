#!/usr/bin/env bash
# What techniques cost in time (the tables of docs/techniques.md): a step with each, in multiples of the step it is set beside,
# which runs right before and after it. SmolLM2-135M's shape, 2 x 512 tokens, random weights and tokens (build/bench/step).
#   bench/techniques.sh [STEPS]     THREADS, RESULTS=DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."

step=${STEP:-build/bench/step}
steps=${1:-5}
results=${RESULTS:-bench/results}
[ -x "$step" ] || { echo "techniques: $step is missing; run make build" >&2; exit 1; }
export GOMP_SPINCOUNT=20000 # as snug train sets it

# seconds KEYS…: of the median step
seconds() {
  "$step" HuggingFaceTB/SmolLM2-135M --batch 2 --seq 512 --threads "${THREADS:-2}" --steps "$steps" "$@" |
    sed -n 's/^\([0-9.]*\) s a step.*/\1/p'
}

# beside "BASE KEYS" "KEYS"…: one line for each, the base measured before and after
beside() {
  local base=$1 before after now
  shift
  printf '\n| `%s` | 1 |\n|---|---:|\n' "$base"
  # shellcheck disable=SC2086 # keys are words
  before=$(seconds $base)
  for keys in "$@"; do
    # shellcheck disable=SC2086
    now=$(seconds $base $keys)
    # shellcheck disable=SC2086
    after=$(seconds $base)
    awk -v k="$keys" -v b="$before" -v n="$now" -v a="$after" 'BEGIN { printf "| `%s` | %.2f |\n", k, 2 * n / (a + b) }'
    before=$after
  done
}

lora="--method lora --bf16 --lora-r 16 --lora-target-modules all-linear"
recomputed="$lora --load-in-4bit --gradient-checkpointing"
full="--method full"

mkdir -p "$results"
report=$results/$(date +%F)-$(python3 bench/common/machine.py)-techniques.md
trap 'rm -f "$report.part"' EXIT
{
  printf '# What techniques cost in time\n\n'
  python3 -c 'import sys; sys.path.insert(0, "bench/common"); import machine; print(machine.description("build/snug"), end="\n\n")'
  sed -n '2,3s/^# //p' bench/techniques.sh
  beside "$lora" "--load-in-4bit" "--load-in-4bit --bnb-4bit-use-double-quant false" "--load-in-4bit --bnb-4bit-quant-type fp4" \
    "--load-in-4bit --bnb-4bit-compute-dtype float32" "--load-in-4bit --prepare-model-for-kbit-training" "--load-in-8bit" \
    "--bf16 false" "--bf16 false --fp16"
  beside "$recomputed" "--lora-r 64" "--use-rslora" "--use-dora" "--lora-dropout 0.05"
  beside "$full" "--optim adamw_bf16_states" "--optim adamw_8bit" "--optim lion_32bit" "--optim lion_8bit" "--optim adafactor" \
    "--optim sgd" "--optimizer-in-bwd --max-grad-norm 0"
  beside "$full --bf16" "--master-weights false"
} >"$report.part"
mv "$report.part" "$report"
echo "$report"
