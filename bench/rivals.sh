#!/usr/bin/env bash
# The same checkpoint, rows and recipe in snug and in Hugging Face's transformers + peft, side by side: speed, memory, time to
# the end of the first step, and the losses of both.
#   bench/rivals.sh      MODEL, a catalogue name (random weights) or a checkpoint; METHOD=lora|qlora|full; BATCH, SEQ, STEPS, THREADS
#                        PRECISION=bf16|fp32, of snug
#                        ROUNDS, in each of which every MODES="bf16 autocast fp32" of the rival runs right after snug
#                        GSM8K=DIRECTORY with train.jsonl; TOKENIZER=DIRECTORY; RESULTS=DIRECTORY
# The rival lives in RIVALS_VENV, outside this tree; it is made from bench/rivals/requirements.txt if it is not there.
set -euo pipefail
cd "$(dirname "$0")/.."

snug=${SNUG:-build/snug}
model=${MODEL:-HuggingFaceTB/SmolLM2-135M}
gsm8k=${GSM8K:-../shared/data/gsm8k}
tokenizer=${TOKENIZER:-../shared/data/tokenizers/smollm2}
venv=${RIVALS_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/snug-rivals}
results=${RESULTS:-bench/results}

skip() { echo "rivals: skipped, $*"; exit 0; }

[ -x "$snug" ] || { echo "rivals: $snug is missing; run make build" >&2; exit 1; }
[ -f "$gsm8k/train.jsonl" ] || skip "$gsm8k has no train.jsonl (GSM8K=DIRECTORY names another place)"
[ -f "$model/model.safetensors" ] || [ -f "$tokenizer/tokenizer.json" ] ||
  skip "$tokenizer has no tokenizer.json (TOKENIZER=DIRECTORY names another place)"
if [ ! -x "$venv/bin/python" ]; then
  echo "rivals: installing bench/rivals/requirements.txt into $venv" >&2
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet -r bench/rivals/requirements.txt || { rm -rf "$venv"; exit 1; }
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/snug-rivals.XXXXXX")
trap 'rm -rf "$work"' EXIT

checkpoint=$model
if [ ! -f "$model/model.safetensors" ]; then
  checkpoint=$work/checkpoint
  "$snug" init "$model" --bf16 --output-dir "$checkpoint" --tokenizer "$tokenizer" >&2
fi

mkdir -p "$results"
name=$(date +%F)-$(python3 bench/common/machine.py)
[ "${METHOD:-lora}" = lora ] || name+=-$METHOD
python3 bench/rivals/compare.py --snug "$snug" --python "$venv/bin/python" --work "$work" --model "$checkpoint" \
  --model-name "$model" --gsm8k "$gsm8k/train.jsonl" --method "${METHOD:-lora}" --precision "${PRECISION:-bf16}" --batch "${BATCH:-4}" --seq "${SEQ:-512}" \
  --steps "${STEPS:-8}" --threads "${THREADS:-2}" --rounds "${ROUNDS:-2}" --modes "${MODES:-bf16 autocast fp32}" \
  --report "$results/$name.md"
