#!/bin/sh
# Trains the golden models with snug and lets transformers and PEFT read what it wrote. By hand:
#
#     tests/oracle/check_snug_outputs.sh [SNUG [PYTHON]]        # build/snug and python3 unless told
#
# 1. With a learning rate that changes nothing, snug writes back a model and adapters whose logits are known: check_checkpoint.py
#    and check_adapter.py hold them against the golden logits, tensor by tensor.
# 2. After real training, check_losses.py holds snug's own evaluation against the oracles' on the same rows.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
snug=$(realpath "${1:-$root/build/snug}")
python=${2:-python3}
golden=$root/tests/golden
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_WAIT_POLICY=passive

# A tokenizer of 29 letters for models whose vocabulary has about 60 ids (2 is their end of text), and rows of both kinds.
"$python" - "$work" <<'PYTHON'
import json, pathlib, random, sys
work = pathlib.Path(sys.argv[1])
letters = "abcdefghijklmnopqrstuvwxyz.,Ġ"
vocabulary = {"<unk>": 0, "<s>": 1, "</s>": 2, **{letter: 3 + i for i, letter in enumerate(letters)}}
added = [{"id": i, "content": name, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
         for i, name in enumerate(("<unk>", "<s>", "</s>"))]
byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
(work / "tokenizer.json").write_text(json.dumps(
    {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": byte_level,
     "post_processor": None, "decoder": byte_level,
     "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
               "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocabulary, "merges": []}}))
(work / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>"}))
random.seed(1)
words = "the cat sat on a mat and saw seven boats go by".split()
sentence = lambda most: " ".join(random.choice(words) for _ in range(random.randint(1, most)))
(work / "text.jsonl").write_text("".join(json.dumps({"text": sentence(8)[:47]}) + "\n" for _ in range(40)))
(work / "pairs.jsonl").write_text("".join(
    json.dumps({"prompt": sentence(3)[:20] + ".", "completion": " " + sentence(3)[:20]}) + "\n" for _ in range(40)))
PYTHON

model() { # GOLDEN_CASE: a copy with the tokenizer
  mkdir -p "$work/$1"
  cp "$golden/$1/config.json" "$golden/$1/generation_config.json" "$golden/$1/model.safetensors" "$work/tokenizer.json" \
    "$work/tokenizer_config.json" "$work/$1/"
  echo "$work/$1"
}

train() { # MODEL OUTPUT DATA FLAGS…
  base=$1 output=$2 rows=$3
  shift 3
  "$snug" train "$base" --data "$rows" --output-dir "$output" --seq 48 --batch 2 --accum 2 --threads 2 --save-steps 0 "$@" \
    >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}

adapter_flags() { # GOLDEN_CASE: what its adapter was made with
  "$python" - "$golden/$1/adapter/adapter_config.json" <<'PYTHON'
import json, sys
config = json.load(open(sys.argv[1]))
words = ["--method", "lora", "--lora-r", str(config["r"]), "--lora-alpha", str(config["lora_alpha"]),
         "--lora-target-modules", ",".join(config["target_modules"])]
pairs = lambda patterns: ",".join(f"{key}={value}" for key, value in patterns.items())
words += ["--use-dora"] * config["use_dora"] + ["--use-rslora"] * config["use_rslora"] + ["--lora-dropout", str(config["lora_dropout"])]
for key in ("rank_pattern", "alpha_pattern"):
    words += ["--" + key, pairs(config[key])] if config[key] else []
if config["modules_to_save"]:
    words += ["--lora-modules-to-save", ",".join(config["modules_to_save"])]
print(" ".join(words))
PYTHON
}

cd "$root"
echo "== written back unchanged"
for case in untied tied rope_llama3 mistral; do
  echo "$case, full"
  train "$(model $case)" "$work/out-$case" "$work/text.jsonl" --method full --lr 1e-30 --max-steps 2 \
    $([ $case != mistral ] || echo --seq 13)  # no longer than its sliding window
  "$python" -W ignore::UserWarning tests/oracle/check_checkpoint.py "$work/out-$case" "$golden/$case/batch.json" "$golden/$case/expected.safetensors"
done
for case in lora lora_tied_head lora_save_head; do
  echo "$case, adapter"
  train "$(model $case)" "$work/out-$case" "$work/text.jsonl" $(adapter_flags $case) --adapter-name-or-path "$golden/$case/adapter" \
    --lr 1e-30 --max-steps 2
  "$python" -W ignore::UserWarning tests/oracle/check_adapter.py "$work/out-$case" "$work/$case" "$golden/$case/batch.json" "$golden/$case/expected.safetensors"
done
for case in rslora_patterns dora_llama dora_qwen2 dora_phi3 dora_gpt2; do
  echo "$case, adapter"
  frozen=$("$python" -c "import json, sys; print(json.load(open(sys.argv[1]))['base'])" "$golden/adapters/$case/expected.json")
  train "$(model $frozen)" "$work/out-$case" "$work/text.jsonl" $(adapter_flags adapters/$case) \
    --adapter-name-or-path "$golden/adapters/$case/adapter" --lr 1e-30 --max-steps 2 --seq 32
  "$python" -W ignore::UserWarning tests/oracle/check_adapter.py "$work/out-$case" "$work/$frozen" "$golden/$frozen/batch.json" \
    "$golden/adapters/$case/expected.safetensors"
  [ $case = dora_gpt2 ] && continue # merging DoRA into weights [in, out] is refused
  "$snug" merge "$work/out-$case" --model "$work/$frozen" --output-dir "$work/merged-$case"
  "$python" -W ignore::UserWarning tests/oracle/check_checkpoint.py "$work/merged-$case" "$golden/$frozen/batch.json" \
    "$golden/adapters/$case/expected.safetensors"
done

echo "== trained, evaluated by both"
for data in text pairs; do
  for case in untied tied; do
    echo "$case, full, $data"
    train "$work/$case" "$work/full-$case-$data" "$work/$data.jsonl" --method full --lr 3e-3 --max-steps 60 --eval-data "$work/$data.jsonl"
    "$python" -W ignore::UserWarning tests/oracle/check_losses.py "$work/full-$case-$data/metrics.jsonl" "$work/full-$case-$data" "$work/$data.jsonl"
  done
  for case in lora lora_tied_head lora_save_head; do
    echo "$case, adapter, $data"
    train "$work/$case" "$work/adapter-$case-$data" "$work/$data.jsonl" $(adapter_flags $case) --lr 1e-2 --max-steps 60 \
      --eval-data "$work/$data.jsonl"
    "$python" -W ignore::UserWarning tests/oracle/check_losses.py "$work/adapter-$case-$data/metrics.jsonl" "$work/$case" "$work/$data.jsonl" \
      --adapter "$work/adapter-$case-$data"
  done
done
echo "every check passed"
