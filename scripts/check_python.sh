#!/usr/bin/env bash
# Packs build/snug and the planner of build-planner into a wheel, installs it in a fresh environment, where neither a compiler nor a
# package index is to be had, and runs the tests of the Python package there; then under every other Python from 3.9 that is here.
# Tests of live trainers run under the Python that SNUG_TRANSFORMERS_PYTHON names, which has torch, transformers, peft, trl and
# bitsandbytes; without one they are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mypy --strict --no-error-summary --cache-dir "$work/mypy" python/snug
wheel=$(python3 python/packing/snug_build.py "$work" none)
echo "$(basename "$wheel"): $(stat -c %s "$wheel") bytes"

# Nothing of the caller's environment but HOME's place is taken over.
alone() { env -i HOME="$work" LC_ALL=C.UTF-8 "$@"; }

install() {  # PYTHON ENVIRONMENT
  alone "$1" -m venv "$2"
  alone PATH="$2/bin" "$2/bin/python" -m pip --disable-pip-version-check install --quiet --no-index "$wheel"
}

run_tests() {  # LOG PYTHON WORDS…: their last lines, or all of them where one fails
  local log=$1
  shift
  alone "$@" >"$log" 2>&1 || { cat "$log"; return 1; }
  sed -n -e 's/^.*\(the callback took\)/\1/p' -e '/^Ran /p' -e '/^OK/p' "$log" | paste -sd' '
  sed -n -e 's/^.*skipped /skipped: /p' "$log" | sort -u
}

others() {
  for other in "$HOME"/.pyenv/versions/3.*/bin/python /usr/bin/python3.[0-9]* /usr/local/bin/python3.[0-9]*; do
    case $other in *-config) continue ;; esac
    [ -x "$other" ] && [ "$(readlink -f "$other")" != "$(readlink -f /usr/bin/python3)" ] || continue
    "$other" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || continue
    rm -rf "$work/other"
    install "$other" "$work/other"
    echo "$("$other" --version): $(run_tests "$work/other.log" "$work/other/bin/python" -m unittest discover -s tests/python -k Recipes -k Errors -k Wheel)"
  done
}

others >"$work/others" 2>&1 &
install /usr/bin/python3 "$work/environment"
run_tests "$work/log" PATH="$work/environment/bin" "$work/environment/bin/python" -W error::ResourceWarning -m unittest discover -v -s tests/python
wait $! || { cat "$work/others"; exit 1; }
cat "$work/others"

if [ -n "${SNUG_TRANSFORMERS_PYTHON:-}" ]; then
  packages=$("$work/environment/bin/python" -c 'import pathlib, snug; print(pathlib.Path(snug.__file__).parent.parent)')
  run_tests "$work/log" CUDA_VISIBLE_DEVICES= PYTHONPATH="$packages" "$SNUG_TRANSFORMERS_PYTHON" -m unittest discover -v -s tests/python -p 'test_[tcd][ra-o]*.py'
else
  echo "skipped: live trainers: SNUG_TRANSFORMERS_PYTHON names no Python that has transformers"
fi
