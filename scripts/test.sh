#!/usr/bin/env bash
# Every test: layout and format of the source, the release build, documents, sanitizers, the planner alone, the CUDA boundary. What
# fails fastest and tells most comes first; each step says how many minutes had gone before it.
set -euo pipefail
cd "$(dirname "$0")/.."

# ctest in a build: its summary with what was skipped, or where a test fails all that it says.
tests() {
  local log="$1/tests.log"
  ctest --test-dir "$1" --output-on-failure -j 2 --no-tests=error "${@:2}" >"$log" || { cat "$log"; return 1; }
  sed -n '/tests passed/,$p' "$log"
}
step() { printf '\n== %s (%d min)\n' "$*" $((SECONDS / 60)); }

step "format"
git ls-files '*.cpp' '*.h' '*.cu' '*.cuh' | xargs clang-format --dry-run -Werror

step "rooms: which folder includes which"
python3 scripts/check_rooms.py

step "CUDA: one source against the kernel header"
cmake/check_cuda.sh

step "release"
tests build

step "documents: the key table as printed, every command as written"
scripts/make_keys_doc.sh | diff docs/keys.md -
python3 scripts/check_docs.py

# Its sources are those of the release; what can differ is what is left out and how it is put together.
step "planner alone"
cmake --preset planner >/dev/null
cmake --build --preset planner --target snug snug_planner plan_tests library_tests
tests build-planner -E NOT_BUILT
scripts/check_planner_library.sh

step "thread sanitizer: loader, files, executor"
cmake --preset thread >/dev/null
cmake --build --preset thread --target data_tests formats_tests train_tests
tests build-thread -R '^(Loader|AtomicDirectory|Checkpoint|golden/Forward)'

step "address and undefined-behaviour sanitizers"
cmake --preset debug >/dev/null
cmake --build --preset debug
tests build-debug

# Half a minute each from the inputs of every minute before; make fuzz takes longer.
step "fuzzing: every reader of outside bytes"
FUZZ_SECONDS=${FUZZ_SECONDS:-30} scripts/fuzz.sh

step "clang-tidy"
scripts/tidy.sh base program plan train generate cli torch explain watch

step "done"
