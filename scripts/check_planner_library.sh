#!/usr/bin/env bash
# Installs the planner of build-planner into a fresh prefix, builds examples/planner against nothing but that, and compares what it
# says with snug plan --json and snug fit --json: check_planner_library.sh [BUILD]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build-planner}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME="$work/cache"  # no probe of this machine: the library reads none

cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S examples/planner -B "$work/example" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/example" >"$work/log" || { cat "$work/log"; exit 1; }

installed=$(cd "$work/prefix" && find . -name '*.h' -o -name '*.hpp' | sort | xargs)
[ "$installed" = "./include/snug/ask.h ./include/snug/planner.h" ] || { echo "installed headers: $installed"; exit 1; }
foreign=$(nm -D --defined-only "$work"/prefix/lib*/*/libsnug_planner.so "$work"/prefix/lib*/libsnug_planner.so 2>/dev/null |
  c++filt | awk '$2 == "T"' | grep -vE ' (snug::planner::.*|snug_(ask|exit_code|output|messages|free|version))$' || true)
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

compare_fit() {  # MODEL MEMORY KEY=VALUE...; MEMORY: a number of GiB or a card
  local model=$1 memory=$2 keys=() code=0 expected=0
  shift 2
  case $memory in *[!0-9.]*) keys=(--gpu "$memory") ;; *) keys=(--memory "${memory}GiB") ;; esac
  for word in "$@"; do keys+=("--${word%%=*}" "${word#*=}"); done
  "$work/prefix/bin/snug" fit "$model" "${keys[@]}" --runtime snug --json >"$work/fit.json" || expected=$?
  "$work/example/planner_example" --fit --json "$model" "$memory" "$@" >"$work/library.json" || code=$?
  "$work/example/planner_example" --fit "$model" "$memory" "$@" >"$work/words" || true
  python3 - "$work" "$code" "$expected" <<'PYTHON'
import json, sys
work, code, expected = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
program, library = (json.load(open(f"{work}/{name}.json")) for name in ("fit", "library"))
for answer in (program, library):
    del answer["seconds"]
    if answer["device"]["name"].endswith("CPU"):
        del answer["device"]["memory_bytes"]  # what this machine can give, asked anew each time
assert program == library, "snug fit --json and the library differ"
assert code == expected == (0 if program["fits"] else 3), (code, expected)
words = open(f"{work}/words").read().splitlines()
if program["fits"]:
    best = next(m for m in program["methods"] if m["name"] == program["method"])["front"][0]
    assert words[0] == f"best: {program['method']}, {best['peak_bytes']} of {program['budget_bytes']} bytes", words[0]
else:
    assert f"{program['way_out']['peak_bytes']} are needed" in words[0], words[0]
PYTHON
}
compare_fit meta-llama/Llama-3.1-8B "RTX 4090"
compare_fit meta-llama/Llama-3.1-8B 1 method=full
compare_fit demo/model 0.1 max_length=256

if "$work/example/planner_example" demo/model 1 no_such_key=1 2>"$work/error"; then exit 1; fi
[ "$(wc -l <"$work/error")" = 1 ] && grep -q no_such_key "$work/error"
echo "the installed planner agrees with snug plan and snug fit"
