#!/usr/bin/env bash
# How long `snug fit` searches for an 8 B model on one core, of snug's own memory and of PyTorch's (best of 5), how long it takes as a
# process for a recipe of another trainer, and how long `snug plan` takes as a process for every model of
# the catalogue (worst of the medians of 5).
set -euo pipefail
cd "$(dirname "$0")/.."
snug=${SNUG:-build/snug}

for gpu in RTX-4090 A100-SXM4-80GB H100-SXM5-80GB; do
  for _ in 1 2 3 4 5; do
    taskset -c 0 "$snug" fit meta-llama/Llama-3.1-8B --gpu $gpu --batch 1 --accum 128 --seq 1024 --runtime snug --json
  done | python3 -c '
import json, sys
text, runs, decoder = sys.stdin.read(), [], json.JSONDecoder()
while text.strip():
    run, end = decoder.raw_decode(text.lstrip())
    runs.append(run)
    text = text.lstrip()[end:]
best = min(runs, key=lambda run: run["seconds"])
count = lambda name: sum(method[name] for method in best["methods"])
print(f"""{sys.argv[1]}: {1000 * best["seconds"]:.0f} ms, {count("candidates")} recipes, {count("compiled")} compiled, {count("laid_out")} laid out""")' $gpu
done

for model in meta-llama/Llama-3.1-8B meta-llama/Llama-3.1-70B; do
  for recipe in bench/truth/recipes/*; do
    for _ in 1 2 3 4 5; do
      begin=$(date +%s%N)
      taskset -c 0 "$snug" fit "$recipe" $model --gpu H100-SXM5-80GB >/dev/null 2>&1 || [ $? -eq 3 ]
      echo $((($(date +%s%N) - begin) / 1000000))
    done | sort -n | head -1 | awk -v what="$(basename "$recipe") for PyTorch, $model" '{ print what ": " $1 " ms as a process" }'
  done
done

export LC_ALL=C
"$snug" models --json | python3 -c 'import json, sys; print("\n".join(m["name"] for m in json.load(sys.stdin)["models"]))' | while read -r model; do
  for _ in 1 2 3 4 5; do
    begin=$(date +%s%N)
    "$snug" plan "$model" --gpu H100-SXM5-80GB --bf16 --gradient-checkpointing >/dev/null || [ $? -eq 3 ]
    echo $((($(date +%s%N) - begin) / 1000))
  done | sort -n | sed -n 3p | awk -v model="$model" '{ printf "%.1f ms %s\n", $1 / 1000, model }'
done | sort -n | awk '{ line[NR] = $0 } END { print "plan: median " line[int((NR + 1) / 2)] ", slowest " line[NR] ", " NR " models" }'
