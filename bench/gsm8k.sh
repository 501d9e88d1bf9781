#!/usr/bin/env bash
# LoRA on the bundled tiny model with GSM8K's real text: loss, speed, planned and measured peak.
#   bench/gsm8k.sh [STEPS]     GSM8K=DIRECTORY with train.jsonl and test.jsonl; BATCH, SEQ, THREADS
set -euo pipefail
cd "$(dirname "$0")/.."

snug=${SNUG:-build/snug}
steps=${1:-100}
data=${GSM8K:-../shared/data/gsm8k}
batch=${BATCH:-8} seq=${SEQ:-512} threads=${THREADS:-2}
export OMP_WAIT_POLICY=passive

if [ ! -f "$data/train.jsonl" ] || [ ! -f "$data/test.jsonl" ]; then
  echo "gsm8k: skipped, $data has no train.jsonl and test.jsonl (GSM8K=DIRECTORY names another place)"
  exit 0
fi
[ -x "$snug" ] || { echo "gsm8k: $snug is missing; run make build" >&2; exit 1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/snug-gsm8k.XXXXXX")
trap 'rm -rf "$work"' EXIT

# rows FILE COUNT: question and answer become prompt and completion.
rows() {
  python3 - "$1" "$2" <<'END'
import itertools, json, sys
with open(sys.argv[1], encoding="utf-8") as lines:
    for line in itertools.islice(lines, int(sys.argv[2])):
        row = json.loads(line)
        print(json.dumps({"prompt": row["question"] + "\n", "completion": row["answer"]}))
END
}
rows "$data/train.jsonl" 100000 >"$work/train.jsonl"
rows "$data/test.jsonl" 100 >"$work/test.jsonl"

if ! "$snug" train demo/model --data "$work/train.jsonl" --eval-data "$work/test.jsonl" --method lora --lora-r 16 --lora-alpha 32 \
  --lora-target-modules all-linear --batch "$batch" --seq "$seq" --threads "$threads" --lr 2e-3 --warmup-steps 10 \
  --max-steps "$steps" --save-steps 0 --seed 1 --output-dir "$work/out" >"$work/train.txt" 2>"$work/train.log"; then
  tail -n 5 "$work/train.log" >&2
  exit 1
fi

grep "lost the end" "$work/train.log" | sed "s/^ */gsm8k: /" || true
python3 - "$work/out/metrics.jsonl" "$batch" "$seq" "$threads" <<'END'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
losses = [line["loss"] for line in lines if "loss" in line]
held_out = [line["eval_loss"] for line in lines if "eval_loss" in line]
summary = next(line["summary"] for line in lines if "summary" in line)
planned, measured = summary["planned_peak_bytes"], summary["measured_peak_bytes"]
ends = min(10, len(losses))
print("\nGSM8K, LoRA r 16 on all linear layers of demo/model, batch %s x %s tokens, %s threads" % tuple(sys.argv[2:]))
print(f"| steps | loss, first {ends} | loss, last {ends} | held-out loss before | after | tokens/s | planned MiB | measured MiB | of plan |")
print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
print(f"| {summary['steps']} | {sum(losses[:ends]) / ends:.3f} | {sum(losses[-ends:]) / ends:.3f} | {held_out[0]:.3f} | "
      f"{held_out[-1]:.3f} | {summary['tokens_per_second']:.0f} | {planned / 2**20:.1f} | {measured / 2**20:.1f} | "
      f"{measured / planned:.1%} |")
END
