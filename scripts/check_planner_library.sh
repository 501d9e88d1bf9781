#!/usr/bin/env bash
# Installs the planner of build-planner into a fresh prefix, builds examples/planner against nothing but that, and compares what it
# says with snug plan --json: check_planner_library.sh [BUILD]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build-planner}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S examples/planner -B "$work/example" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/example" >"$work/log" || { cat "$work/log"; exit 1; }

installed=$(cd "$work/prefix" && find . -name '*.h' -o -name '*.hpp')
[ "$installed" = ./include/snug/planner.h ] || { echo "installed headers: $installed"; exit 1; }
foreign=$(nm -D --defined-only "$work"/prefix/lib*/*/libsnug_planner.so "$work"/prefix/lib*/libsnug_planner.so 2>/dev/null |
  c++filt | awk '$2 == "T"' | grep -v ' snug::planner::' || true)
[ -z "$foreign" ] || { echo "visible symbols: $foreign"; exit 1; }

compare() {  # MODEL GIB KEY=VALUE...
  local model=$1 memory=$2 keys=() words code=0 expected=0
  shift 2
  for word in "$@"; do keys+=("--${word%%=*}" "${word#*=}"); done
  "$work/prefix/bin/snug" plan "$model" --memory "${memory}GiB" "${keys[@]}" --json >"$work/plan.json" || expected=$?
  words=$("$work/example/planner_example" "$model" "$memory" "$@") || code=$?
  python3 - "$work/plan.json" "$words" "$code" "$expected" <<'PYTHON'
import json, sys
plan, words, code, expected = json.load(open(sys.argv[1])), sys.argv[2].splitlines(), int(sys.argv[3]), int(sys.argv[4])
verdict = f"{'fits' if plan['fits'] else 'does not fit'}: {plan['peak_bytes']} of {plan['budget_bytes']} bytes, peak in {plan['peak_stage']}"
assert words[0] == verdict, (words[0], verdict)
assert code == expected == (0 if plan["fits"] else 3), (code, expected)
shown = {line.split()[0]: int(line.split()[1]) for line in words[1:] if line.startswith("  ")}
assert shown == {name: n for name, n in plan["breakdown"].items() if n}, shown
assert plan["fits"] or words[-1].startswith(("smallest change", "nothing fits")), words
PYTHON
}
compare meta-llama/Llama-3.1-8B 24 bf16=true max_length=2048
compare meta-llama/Llama-3.1-8B 8 bf16=true method=full
compare demo/model 1 lora_r=16 gradient_checkpointing=true
if "$work/example/planner_example" demo/model 1 no_such_key=1 2>"$work/error"; then exit 1; fi
[ "$(wc -l <"$work/error")" = 1 ] && grep -q no_such_key "$work/error"
echo "the installed planner agrees with snug plan"
