#!/usr/bin/env bash
# Loading a checkpoint beside the disk's sequential read speed, both from a cold page cache: pairs of (disk, load), one for
# bf16 files into bf16 memory (straight into place), one for fp32 files into bf16 memory (through staging).
#   bench/load.sh      MODEL, a catalogue name; PAIRS; LOAD, the program; RESULTS=DIRECTORY; TMPDIR, on the disk in question
# The disk's speed is the faster of two reads of the same file: dd with 4 MiB blocks through the page cache, and with O_DIRECT.
set -euo pipefail
cd "$(dirname "$0")/.."

snug=${SNUG:-build/snug}
load=${LOAD:-build/bench/load}
model=${MODEL:-TinyLlama/TinyLlama-1.1B-Chat-v1.0}
pairs=${PAIRS:-5}
results=${RESULTS:-bench/results}

for program in "$snug" "$load"; do
  [ -x "$program" ] || { echo "load: $program is missing; run make build" >&2; exit 1; }
done
work=$(mktemp -d "${TMPDIR:-/tmp}/snug-load.XXXXXX")
trap 'rm -rf "$work"' EXIT

# chill FILE: takes the file out of the page cache, by the kernel's switch if we may, else by advice for this file.
if [ -w /proc/sys/vm/drop_caches ] && (echo 3 >/proc/sys/vm/drop_caches) 2>/dev/null; then
  chilled_by="echo 3 > /proc/sys/vm/drop_caches"
  chill() { sync "$1"; echo 3 >/proc/sys/vm/drop_caches; }
else
  chilled_by="posix_fadvise(POSIX_FADV_DONTNEED)"
  chill() {
    sync "$1"
    python3 -c 'import os, sys; os.posix_fadvise(os.open(sys.argv[1], os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)' "$1"
  }
fi

# disk_seconds FILE [dd's words]: cold, sequential.
disk_seconds() {
  chill "$1"
  LC_ALL=C dd if="$1" of=/dev/null bs=4M "${@:2}" 2>&1 | sed -n 's/.*copied, \([0-9.e-]*\) s,.*/\1/p'
}

# measure KIND: lines of "KIND BYTES DISK_BUFFERED DISK_DIRECT LOAD ARENA", all but bytes in seconds.
measure() {
  local file=$work/$1/model.safetensors bytes buffered direct line
  bytes=$(stat -c %s "$file")
  for _ in $(seq "$pairs"); do
    buffered=$(disk_seconds "$file")
    direct=$(disk_seconds "$file" iflag=direct || true)  # empty where the file system has no O_DIRECT
    chill "$file"
    line=$("$load" "$work/$1" --bf16 --seq 64 --json)
    echo "$1 $bytes $buffered ${direct:-inf} $(sed 's/.*"seconds": \([0-9.e-]*\), .*"arena_seconds": \([0-9.e-]*\)}/\1 \2/' <<<"$line")"
  done
}

: >"$work/figures"
for kind in bf16 f32; do
  flags=()
  [ $kind = bf16 ] && flags=(--bf16)
  "$snug" init "$model" "${flags[@]}" --output-dir "$work/$kind" >/dev/null
  measure $kind | tee -a "$work/figures" >&2
  rm -rf "${work:?}/$kind"
done

mkdir -p "$results"
report=$results/$(date +%F)-$(python3 bench/common/machine.py)-load.md
{
  echo "# Loading a checkpoint beside the disk"
  echo
  python3 bench/common/machine.py --long
  echo "- cold page cache before each reading: $chilled_by"
  echo "- file system: $(stat -f -c %T "${TMPDIR:-/tmp}"), read-ahead $(cat /sys/dev/block/"$(stat -c %Hd:%Ld "$work")"/queue/read_ahead_kb 2>/dev/null || echo unknown) KiB"
  echo "- model: $model, $pairs pairs each; disk: dd bs=4M, through the page cache or with iflag=direct, whichever is faster"
  echo
  python3 - "$work/figures" <<'PYTHON'
import statistics, sys

NAMES = {"bf16": "bf16 file into bf16 memory", "f32": "fp32 file into bf16 memory"}
rows = {}
for line in open(sys.argv[1]):
    kind, *figures = line.split()
    rows.setdefault(kind, []).append([float(x) for x in figures])

print("| | GB | disk GB/s | snug GB/s | snug / disk, each pair | median | arena s |")
print("|---|---:|---:|---:|---|---:|---:|")
enough = True
for kind, pairs in rows.items():
    ratios = [min(buffered, direct) / load for _, buffered, direct, load, _ in pairs]
    disk = statistics.median(size / min(buffered, direct) for size, buffered, direct, _, _ in pairs)
    speed = statistics.median(size / load for size, _, _, load, _ in pairs)
    median = statistics.median(ratios)
    enough = enough and median >= 0.8
    print(f"| {NAMES[kind]} | {pairs[0][0] / 1e9:.2f} | {disk / 1e9:.2f} | {speed / 1e9:.2f} | "
          f"{', '.join(f'{ratio:.0%}' for ratio in ratios)} | **{median:.0%}** | {statistics.median(p[4] for p in pairs):.2f} |")
print(f"\nRequired: 80 % of the disk. {'Reached.' if enough else 'NOT reached.'} Before loading, the arena is committed (last column).")
PYTHON
} | tee "$report"
