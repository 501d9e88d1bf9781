#!/usr/bin/env bash
# Reading and replaying a large memory snapshot: seconds, and the most memory held (VmHWM).
#   bench/explain.sh      BYTES, of the snapshot; PYTHON, that makes it; BUILD, a configured build; TMPDIR, where the file lies
# Required: 1 GB in at most 10 s and 300 MB.
set -euo pipefail
cd "$(dirname "$0")/.."

bytes=${BYTES:-1000000000}
build=${BUILD:-build}
free=$(df --output=avail -B1 "${TMPDIR:-/tmp}" | tail -n 1)
if ((free < bytes * 3 / 2)); then
  echo "explain: ${TMPDIR:-/tmp} has $free bytes free, $((bytes * 3 / 2)) are needed; set TMPDIR or BYTES" >&2
  exit 1
fi
[ -x "$build/bench/read_snapshot" ] || { echo "explain: $build/bench/read_snapshot is missing; run make build" >&2; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/snug-explain.XXXXXX")
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" bench/explain/make_snapshot.py --bytes "$bytes" "$work/snapshot.pickle" >/dev/null
stat -c '%s bytes' "$work/snapshot.pickle"
for _ in 1 2 3; do "$build/bench/read_snapshot" "$work/snapshot.pickle"; done
