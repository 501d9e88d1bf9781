#!/usr/bin/env bash
# Where a step's time goes, and its share of the machine's ceiling (bench/step.cpp): LoRA and full fine-tuning of SmolLM2-135M's
# shape, LoRA of Qwen2.5-1.5B's shape as a Llama; each with products in fp32 and, where the CPU has it, in bf16.
#   bench/step.sh [STEPS]     THREADS, RESULTS=DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."

step=${STEP:-build/bench/step}
steps=${1:-10}
threads=${THREADS:-2}
results=${RESULTS:-bench/results}
[ -x "$step" ] || { echo "step: $step is missing; run make build" >&2; exit 1; }
export GOMP_SPINCOUNT=20000 # as snug train sets it

work=$(mktemp -d "${TMPDIR:-/tmp}/snug-step.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat >"$work/config.json" <<'END'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 1536, "intermediate_size": 8960,
 "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": true,
 "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0}
END

# measure TITLE MODEL FLAGS…
measure() {
  local title=$1
  shift
  for products in --fp32-products ""; do
    printf '## %s%s\n\n```\n' "$title" "${products:+, products in fp32}"
    # shellcheck disable=SC2086 # no flag is no argument
    "$step" "$@" --bf16 --threads "$threads" --steps "$steps" $products | sed '/^$/{s/^/```\n/;:a;n;ba}'
    echo
    grep -qE 'amx_bf16|avx512_bf16' /proc/cpuinfo || break
  done
}

lora=(--method lora --lora-r 16 --lora-target-modules all-linear)
mkdir -p "$results"
report=$results/$(date +%F)-$(python3 bench/common/machine.py)-step.md
{
  printf '# Where a step goes\n\nbf16 weights, %s steps each; `bench/step.cpp` says what is counted.\n\n' "$steps"
  python3 -c 'import sys; sys.path.insert(0, "bench/common"); import machine; print(machine.description("build/snug"), end="\n\n")'
  measure "LoRA r 16 on all linear layers, SmolLM2-135M, 4 x 512" HuggingFaceTB/SmolLM2-135M "${lora[@]}" --batch 4 --seq 512
  measure "Full fine-tuning, SmolLM2-135M, 4 x 512" HuggingFaceTB/SmolLM2-135M --method full --batch 4 --seq 512
  measure "LoRA r 16 on all linear layers, Qwen2.5-1.5B's shape, 1 x 512" "$work/config.json" "${lora[@]}" --batch 1 --seq 512
} >"$report.draft"
mv "$report.draft" "$report"
cat "$report"
