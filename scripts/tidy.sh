#!/usr/bin/env bash
# clang-tidy over the rooms, with .clang-tidy: tidy.sh [ROOM…] (default: those whose sources are plain C++; the kernels' vector code is
# compiled once for each instruction set and would take an hour). BUILD names a configured build (default: build).
set -euo pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build}
rooms=("$@")
[ ${#rooms[@]} -gt 0 ] || rooms=(base model recipe formats data program plan train cli)

# GCC's warning switches are not all clang's; findings in headers are printed with every source that includes them.
for room in "${rooms[@]}"; do find "src/$room" -name '*.cpp' -print0; done |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy -quiet -p "$build" --extra-arg=-Wno-unknown-warning-option 2>/dev/null
