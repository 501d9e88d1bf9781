#!/usr/bin/env bash
# What quantized weights cost: LoRA on bf16 weights and QLoRA (NF4, double quantization) in turn, the same rows and recipe, on
# SmolLM2-135M's and Qwen2.5-1.5B's shapes with random weights. Speed is the median step's, warm-up left out, the ratio that of
# neighbouring runs.
#   bench/qlora.sh [STEPS]     ROUNDS, SEQ, THREADS, GSM8K=DIRECTORY, TOKENIZER=DIRECTORY, RESULTS=DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."

snug=${SNUG:-build/snug}
steps=${1:-6}
gsm8k=${GSM8K:-../shared/data/gsm8k}
tokenizer=${TOKENIZER:-demo/model}
results=${RESULTS:-bench/results}
[ -x "$snug" ] || { echo "qlora: $snug is missing; run make build" >&2; exit 1; }
[ -f "$gsm8k/train.jsonl" ] || { echo "qlora: skipped, $gsm8k has no train.jsonl (GSM8K=DIRECTORY names another place)"; exit 0; }

work=$(mktemp -d "${TMPDIR:-/tmp}/snug-qlora.XXXXXX")
trap 'rm -rf "$work"' EXIT

# run NAME MODEL BATCH METHOD: appends "NAME METHOD tokens/s measured-peak" to $work/figures.
run() {
  "$snug" train "$2" --method "$4" --bf16 --lora-r 16 --lora-target-modules all-linear --batch "$3" --seq "${SEQ:-512}" \
    --threads "${THREADS:-2}" --max-steps "$steps" --save-steps 0 --data "$gsm8k/train.jsonl" --output-dir "$work/out" \
    --overwrite-output-dir >/dev/null 2>&1
  python3 - "$work/out/metrics.jsonl" "$1" "$4" >>"$work/figures" <<'END'
import json, statistics, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
speeds = [row["tokens_per_second"] for row in rows if "tokens_per_second" in row and "step" in row]
print(sys.argv[2], sys.argv[3], statistics.median(speeds[2:]), rows[-1]["summary"]["measured_peak_bytes"])
END
}

cat >"$work/Qwen2.5-1.5B" <<'END'
{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_act": "silu", "hidden_size": 1536, "intermediate_size": 8960,
 "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": true,
 "max_position_embeddings": 131072, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "torch_dtype": "bfloat16"}
END

# compare MODEL BATCH
compare() {
  "$snug" init "$1" --bf16 --output-dir "$work/model" --tokenizer "$tokenizer" >&2
  for _ in $(seq "${ROUNDS:-3}"); do
    for method in lora qlora; do run "$(basename "$1")" "$work/model" "$2" "$method"; done
  done
  rm -r "$work/model"
}

compare HuggingFaceTB/SmolLM2-135M 4
compare "$work/Qwen2.5-1.5B" 1

mkdir -p "$results"
report=$results/$(date +%F)-$(python3 bench/common/machine.py)-qlora-cost.md
{
  printf '# QLoRA beside LoRA on bf16 weights\n\n'
  python3 -c 'import sys; sys.path.insert(0, "bench/common"); import machine; print(machine.description("build/snug"), end="\n\n")'
  sed -n '2,4s/^# //p' bench/qlora.sh
  python3 - "$work/figures" <<'END'
import collections, statistics, sys
speeds, peaks = collections.defaultdict(list), {}
for line in open(sys.argv[1]):
    name, method, speed, peak = line.split()
    speeds[name, method].append(float(speed))
    peaks[name, method] = int(peak)
print("\n| shape | LoRA, tokens/s | QLoRA, tokens/s | QLoRA / LoRA | peak of LoRA | of QLoRA |\n|---|---|---|---|---|---|")
for name in dict.fromkeys(name for name, _ in speeds):
    lora, qlora = speeds[name, "lora"], speeds[name, "qlora"]
    ratios = [b / a for a, b in zip(lora, qlora)]
    print(f"| {name} | {statistics.median(lora):.0f} | {statistics.median(qlora):.0f} | {statistics.median(ratios):.3f} "
          f"({min(ratios):.3f} – {max(ratios):.3f}) | {peaks[name, 'lora'] / 2**20:.0f} MiB | {peaks[name, 'qlora'] / 2**20:.0f} MiB |")
END
} >"$report.draft"
mv "$report.draft" "$report"
cat "$report"
