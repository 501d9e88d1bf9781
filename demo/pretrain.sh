#!/usr/bin/env bash
# How demo/model was made, from random weights, by snug itself. About ten minutes on two cores.
#   demo/pretrain.sh [WORK_DIRECTORY]     the result replaces demo/model
set -euo pipefail
cd "$(dirname "$0")/.."

snug=${SNUG:-build/snug}
work=${1:-$(mktemp -d "${TMPDIR:-/tmp}/snug-pretrain.XXXXXX")}
export OMP_WAIT_POLICY=passive

mkdir -p "$work"
cat >"$work/config.json" <<'END'
{
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "vocab_size": 640,
  "hidden_size": 128,
  "intermediate_size": 352,
  "num_hidden_layers": 4,
  "num_attention_heads": 4,
  "num_key_value_heads": 2,
  "max_position_embeddings": 512,
  "rms_norm_eps": 1e-05,
  "rope_theta": 10000.0,
  "hidden_act": "silu",
  "tie_word_embeddings": true,
  "bos_token_id": null,
  "eos_token_id": 0,
  "torch_dtype": "float32"
}
END
python3 demo/make_corpus.py stories --rows 80000 --seed 1 >"$work/stories.jsonl"
python3 demo/make_tokenizer.py "$work/stories.jsonl" --vocabulary 640 --output-dir "$work/tokenizer"
"$snug" init "$work/config.json" --seed 1 --tokenizer "$work/tokenizer" --output-dir "$work/random"
"$snug" train "$work/random" --data "$work/stories.jsonl" --method full --batch 16 --seq 128 --threads 2 --lr 3e-3 \
  --lr-scheduler-type cosine --warmup-steps 50 --max-steps 4000 --save-steps 0 --seed 1 --output-dir "$work/model" --overwrite-output-dir

mkdir -p demo/model
for file in config.json model.safetensors tokenizer.json tokenizer_config.json; do
  cp "$work/model/$file" "demo/model/$file"
done
