#!/usr/bin/env bash
# Greedy decoding with random weights of SmolLM2-135M's shape: snug beside what memory gives (bench/generate.cpp) and beside
# transformers' generate (bench/rivals/generate.py), in bf16 and fp32; in fp32 both must write the same text.
#   bench/generate.sh    MODEL, THREADS, TOKENS; TOKENIZER=DIRECTORY; RIVALS_VENV as in bench/rivals.sh, or RIVALS_PYTHON; RESULTS=DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."

snug=${SNUG:-build/snug}
bench=${BENCH:-build/bench/generate}
model=${MODEL:-HuggingFaceTB/SmolLM2-135M}
tokenizer=${TOKENIZER:-../shared/data/tokenizers/smollm2}
python=${RIVALS_PYTHON:-${RIVALS_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/snug-rivals}/bin/python}
threads=${THREADS:-2}
tokens=${TOKENS:-128}
results=${RESULTS:-bench/results}
[ -x "$bench" ] || { echo "generate: $bench is missing; run make build" >&2; exit 1; }
[ -f "$tokenizer/tokenizer.json" ] || { echo "generate: skipped, $tokenizer has no tokenizer.json"; exit 0; }
export GOMP_SPINCOUNT=20000 # as snug generate sets it

work=$(mktemp -d "${TMPDIR:-/tmp}/snug-generate.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$snug" init "$model" --bf16 --output-dir "$work/model" --tokenizer "$tokenizer" >&2

# row FILE DTYPE BF16 SENTENCES: both programs go on from a prompt of so many sentences
row() {
  local prompt
  prompt=$(printf 'The owl looked at the moon and said nothing. %.0s' $(seq "$4"))
  "$snug" generate "$work/model" --prompt "$prompt" --max-new-tokens "$tokens" --bf16 "$3" --threads "$threads" --json 2>/dev/null >"$work/snug.$1"
  if [ -x "$python" ]; then
    env -u GOMP_SPINCOUNT "$python" bench/rivals/generate.py "$work/model" --dtype "$2" --prompt "$prompt" --tokens "$tokens" --threads "$threads" >"$work/rival.$1" 2>/dev/null
  else
    echo "generate: no $python; run bench/rivals.sh first" >&2
  fi
}

# side DTYPE BF16: a round of both programs with a short prompt and a long one
side() {
  printf '## %s\n\n```\n' "$1"
  "$bench" "$work/model" --bf16 "$2" --threads "$threads" --tokens "$tokens" | sed '/^$/{s/^/```\n/;:a;n;ba}'
  printf '\n'
  row short "$1" "$2" 12
  row long "$1" "$2" 100
  python3 - "$work" <<'END'
import json, pathlib, sys
work = pathlib.Path(sys.argv[1])
print("| | prompt, tokens | tokens/s | prompt tokens/s |\n|---|---:|---:|---:|")
texts = []
for prompt in ("short", "long"):
    rows = {name: json.loads((work / f"{name}.{prompt}").read_text()) for name in ("snug", "rival") if (work / f"{name}.{prompt}").exists()}
    for name, row in rows.items():
        label = "`snug generate`" if name == "snug" else row["versions"]
        print(f"| {label} | {row['prompt_tokens']} | {row['tokens_per_second']:.1f} | {row['prompt_tokens'] / row['prompt_seconds']:.0f} |")
    if len(rows) == 2:
        a, b = (row["text"] for row in rows.values())
        same = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        texts.append(f"After the {prompt} prompt both wrote the same text." if a == b
                     else f"After the {prompt} prompt the texts agree in their first {same} of {len(a)} characters.")
print("\n" + "\n".join(texts))
print()
END
}

mkdir -p "$results"
report=$results/$(date +%F)-$(python3 bench/common/machine.py)-generate.md
{
  printf '# Decoding\n\n%s, random weights, greedy, %s tokens, %s threads; `bench/generate.cpp` says what the ceiling is.\n\n' "$model" "$tokens" "$threads"
  python3 -c 'import sys; sys.path.insert(0, "bench/common"); import machine; print(machine.description("build/snug"), end="\n\n")'
  side bfloat16 true
  side float32 false
} >"$report.draft"
mv "$report.draft" "$report"
cat "$report"
