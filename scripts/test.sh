#!/usr/bin/env bash
# Every test: layout and format of the source, the release build, sanitizers, the planner alone, the CUDA boundary.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s\n' "$*"; }

step "format"
git ls-files '*.cpp' '*.h' '*.cu' '*.cuh' | xargs clang-format --dry-run -Werror

step "rooms: which folder includes which"
python3 scripts/check_rooms.py

step "clang-tidy: the planner's rooms, the executor, generation"
scripts/tidy.sh base program plan train generate cli

step "CUDA: one source against the kernel header"
cmake/check_cuda.sh

step "planner alone"
cmake --preset planner >/dev/null
cmake --build --preset planner
ctest --test-dir build-planner --output-on-failure -j 2 --no-tests=error | tail -n 3
scripts/check_planner_library.sh

step "thread sanitizer: loader, files, executor"
cmake --preset thread >/dev/null
cmake --build --preset thread --target data_tests formats_tests train_tests
ctest --test-dir build-thread --output-on-failure -j 2 --no-tests=error -R '^(Loader|AtomicDirectory|Checkpoint|golden/Forward)' | tail -n 3

step "address and undefined-behaviour sanitizers"
cmake --preset debug >/dev/null
cmake --build --preset debug
ctest --test-dir build-debug --output-on-failure -j 2 --no-tests=error | tail -n 12

step "fuzzing: every reader of outside bytes"
scripts/fuzz.sh

step "release"
ctest --test-dir build --output-on-failure -j 2 --no-tests=error

step "documents: the key table as printed, every command as written"
scripts/make_keys_doc.sh | diff docs/keys.md -
python3 scripts/check_docs.py
