#!/usr/bin/env bash
# clang-tidy over the rooms, with .clang-tidy: tidy.sh [ROOM…] (default: all whose sources are plain C++; the kernels' vector code is
# compiled once for each instruction set and would take an hour).
set -euo pipefail
cd "$(dirname "$0")/.."

rooms=("$@")
[ ${#rooms[@]} -gt 0 ] || rooms=(base program plan advise train generate report cli torch explain watch)

# A database that names each source by itself; nothing is built in it.
build=build-tidy
cmake --preset release -B "$build" -DSNUG_UNITY=OFF >/dev/null

# GCC's warning switches are not all clang's; findings in headers are printed with every source that includes them.
for room in "${rooms[@]}"; do find "src/$room" -name '*.cpp' -print0; done |
  xargs -0 -n 1 -P "$(nproc)" clang-tidy -quiet -p "$build" --extra-arg=-Wno-unknown-warning-option 2>/dev/null
