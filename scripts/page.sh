#!/usr/bin/env bash
# Builds the page, in build-page/page (docs/page.md). Ends with 77, and says why, where its compiler or the sources of its libraries are
# not to be had.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh page || { echo "page.sh: skipped, there is no compiler for WebAssembly (clang-19, lld-19, llvm-19, wasi-libc, libclang-rt-19-dev-wasm32)" >&2; exit 77; }
cmake/page/sources.sh || { echo "page.sh: skipped" >&2; exit 77; }
cmake --preset page >/dev/null
cmake --build --preset page
