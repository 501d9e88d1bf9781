#!/usr/bin/env bash
# Llama-2-7B's shape (random weights) by QLoRA: NF4 with double quantization, LoRA r 16 on q, k, v, o, bf16, blocks recomputed,
# paged 8-bit AdamW, 4 micro-batches of 512 tokens, two steps. Planned and measured peak, and the time of each part.
#   bench/qlora_7b.sh      WORK=DIRECTORY with 30 GB free, MODEL=a checkpoint that is there already; GSM8K, TOKENIZER, RESULTS, THREADS
set -euo pipefail
cd "$(dirname "$0")/.."

snug=${SNUG:-build/snug}
gsm8k=${GSM8K:-../shared/data/gsm8k}
tokenizer=${TOKENIZER:-demo/model}
results=${RESULTS:-bench/results}
parent=${WORK:-${TMPDIR:-/tmp}}

[ -x "$snug" ] || { echo "qlora_7b: $snug is missing; run make build" >&2; exit 1; }
[ -f "$gsm8k/train.jsonl" ] || { echo "qlora_7b: skipped, $gsm8k has no train.jsonl (GSM8K=DIRECTORY names another place)"; exit 0; }
free=$(($(df --output=avail -B1 "$parent" | tail -1)))
if [ -z "${MODEL:-}" ] && [ "$free" -lt 30000000000 ]; then
  echo "qlora_7b: skipped, $parent has $((free / 1000000000)) GB free and 30 are needed (WORK=DIRECTORY names another place)"
  exit 0
fi

work=$(mktemp -d "$parent/snug-qlora-7b.XXXXXX")
trap 'rm -rf "$work"' EXIT
model=${MODEL:-$work/model}
start=$SECONDS
[ -f "$model/model.safetensors" ] || "$snug" init meta-llama/Llama-2-7b-hf --bf16 --output-dir "$model" --tokenizer "$tokenizer" >&2
made=$((SECONDS - start))

start=$SECONDS
"$snug" train "$model" --method qlora --bf16 --lora-r 16 --lora-target-modules q_proj,k_proj,v_proj,o_proj --gradient-checkpointing \
  --optim paged_adamw_8bit --accum 4 --seq 512 --max-steps 2 --threads "${THREADS:-2}" --data "$gsm8k/train.jsonl" \
  --output-dir "$work/out" | tee /dev/stderr >"$work/screen"
took=$((SECONDS - start))

mkdir -p "$results"
report=$results/$(date +%F)-$(python3 bench/common/machine.py)-qlora-7b.md
{
  printf '# QLoRA of Llama-2-7B%ss shape\n\n' "'"
  python3 -c 'import sys; sys.path.insert(0, "bench/common"); import machine; print(machine.description("build/snug"), end="\n\n")'
  sed -n '2,3s/^# //p' bench/qlora_7b.sh
  printf '\n| | |\n|---|---|\n'
  python3 - "$work/out/metrics.jsonl" "$took" "$made" <<'END'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
steps = [row for row in rows if "loss" in row and "step" in row]
summary = rows[-1]["summary"]
took = int(sys.argv[2])
print(f"| peak, planned | {summary['planned_peak_bytes'] / 1e9:.3f} GB |")
print(f"| peak, measured (VmHWM) | {summary['measured_peak_bytes'] / 1e9:.3f} GB, {100 * summary['measured_peak_bytes'] / summary['planned_peak_bytes']:.2f} % of it |")
print(f"| whole run, loading and saving included | {took // 60} min {took % 60} s |")
print(f"| over the two steps, padding not counted | {summary['tokens_per_second']:.1f} tokens/s |")
print(f"| losses | {', '.join(str(row['loss']) for row in steps)} |")
if int(sys.argv[3]): print(f"| writing the random checkpoint, 13.5 GB | {int(sys.argv[3])} s |")
END
} >"$report.draft"
mv "$report.draft" "$report"
cat "$report"
