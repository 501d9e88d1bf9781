#!/usr/bin/env bash
# Runs every benchmark script of this folder and prints their tables. Goes on after a failure, and says so at the end.
set -euo pipefail
cd "$(dirname "$0")"

failed=()
for script in ./*.sh; do
  [ "$script" = ./run.sh ] && continue
  "$script" || failed+=("${script#./}")
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
