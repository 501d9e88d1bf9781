#!/bin/sh
# Checks that every CUDA source compiles: with nvcc where it is found, else the device side with clang++ alone (no toolkit, no GPU).
# check_cuda.sh [nvcc|clang++]: that compiler instead of the first one found. NVCC and CLANGXX may name others.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
nvcc=${NVCC:-nvcc}
clang=${CLANGXX:-clang++}
wanted=${1:-}

has() { command -v "$1" >/dev/null 2>&1; }

if [ "$wanted" != clang++ ] && has "$nvcc"; then
  check() { "$nvcc" -std=c++20 -Werror all-warnings -I "$root/src" -cubin -o /dev/null "$1"; }
  name=$nvcc
elif [ "$wanted" != nvcc ] && has "$clang"; then
  check() {
    "$clang" -x cuda -std=c++20 -nocudainc -nocudalib --cuda-device-only --cuda-gpu-arch=sm_80 -fsyntax-only -Wall -Wextra -Werror \
      -Wno-unknown-cuda-version -include "$root/src/kernels/cuda/clang_prelude.h" -I "$root/src" "$1"
  }
  name=$clang
else
  echo "check_cuda: neither $nvcc nor $clang is installed" >&2
  exit 1
fi

sources=$(echo "$root"/src/kernels/cuda/*.cu)
[ "$name" != "$nvcc" ] || sources="$sources $root/tests/kernels/card_check.cu"  # it needs the toolkit
for source in $sources; do
  check "$source"
  echo "$name: ${source#"$root"/}"
done
