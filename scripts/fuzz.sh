#!/usr/bin/env bash
# Builds the fuzz targets, in the sanitizers' build, and runs each for FUZZ_SECONDS (default 60), starting from
# tests/fuzz/corpus/NAME. What it finds on the way stays in build-debug/fuzz/corpus/NAME; an input that breaks a reader is kept in
# build-debug/fuzz and ends the run with an error.
# fuzz.sh [NAME…]: these targets only.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-60}
found=build-debug/fuzz
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for source in tests/fuzz/*_fuzz.cpp; do targets+=("$(basename "$source" _fuzz.cpp)"); done
fi

cmake --preset debug >/dev/null
cmake --build --preset debug --target fuzz_targets

# One target for FUZZ_SECONDS; its line says what it did.
fuzz() {
  local target=$1 log="$found/$1.log"
  mkdir -p "$found/corpus/$target"
  if "build-debug/tests/fuzz/${target}_fuzz" -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=2048 -close_fd_mask=1 \
    -artifact_prefix="$found/$target-" "$found/corpus/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1; then
    echo "$target: $(grep -E '^Done' "$log" || tail -n 1 "$log")"
  else
    echo "$target: FAILED, the input is $(find "$found" -maxdepth 1 -name "$target-*" -newer "$found/corpus/$target" | head -n 1)"
    grep -E 'ERROR|SUMMARY|runtime error|^    #[0-9]' "$log" | head -n 15
    return 1
  fi
}
export -f fuzz
export found seconds

printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I TARGET bash -c 'fuzz TARGET'
