#!/usr/bin/env bash
# The gates beside make test: layout and format of the source, CUDA's boundary, the planner alone, the page, sanitizers, fuzzing, clang-tidy. What
# fails fastest comes first; each step says how long after the start it began.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/steps.sh

step "format"
git ls-files '*.cpp' '*.h' '*.cu' '*.cuh' | xargs clang-format --dry-run -Werror

step "rooms: which folder includes which"
python3 scripts/check_rooms.py
python3 scripts/check_names.py

step "CUDA: one source against the kernel header"
cmake/check_cuda.sh

sanitizer_builds() {
  yield_cores
  build thread --target race_tests
  build debug
}
begin sanitizer_builds sanitizer_builds

step "Debian packages, in a bare root"
scripts/package.sh
scripts/check_package.sh || [ $? -eq 77 ]

# Its sources are those of the release, and tested there; what can differ is what is left out and how it is put together. So are the
# objects, where the words of the compiler are the same.
step "planner alone"
build release --target snug
cmake --preset planner -D CMAKE_CXX_COMPILER_LAUNCHER="$PWD/scripts/from_release.py" >/dev/null
cmake --build --preset planner --target snug shipped snug_planner library_tests
tests build-planner -R '^library '
scripts/check_planner_library.sh

step "Python package, in a fresh environment"
scripts/check_python.sh

step "page: the planner in a browser's tab"
scripts/page.sh && python3 tests/page/check_page.py || [ $? -eq 77 ]

step "sanitizers: build"
await sanitizer_builds
tidy() {
  yield_cores
  scripts/tidy.sh
}
begin tidy tidy

step "thread sanitizer: loader, files, pages, executor"
tests build-thread

# Where each allocation was made is not kept: a twelfth of the time. Give malloc_context_size=30 to read a report.
step "address and undefined-behaviour sanitizers: tests"
ASAN_OPTIONS=${ASAN_OPTIONS:-malloc_context_size=0} tests build-debug

# Ten seconds each from the inputs of every minute before; make fuzz takes longer.
step "fuzzing: every reader of outside bytes"
FUZZ_SECONDS=${FUZZ_SECONDS:-10} scripts/fuzz.sh

step "clang-tidy"
await tidy

step "done"
