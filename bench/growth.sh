#!/usr/bin/env bash
# How cost grows with the work: sequence length, layers and LoRA rank are doubled again and again on a small shape; peak memory
# and the time of a step are compared with what the plan says. Writes a table and a picture.
#   bench/growth.sh      THREADS; SECONDS_A_POINT, how long to measure each; QUICK=1: three points an axis; RESULTS=DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."

snug=${SNUG:-build/snug}
results=${RESULTS:-bench/results}
[ -x "$snug" ] || { echo "growth: $snug is missing; run make build" >&2; exit 1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/snug-growth.XXXXXX")
trap 'rm -rf "$work"' EXIT

mkdir -p "$results"
report=$results/$(date +%F)-$(python3 bench/common/machine.py)-growth
python3 demo/make_corpus.py task --rows 4000 >"$work/rows.jsonl"
python3 bench/growth/measure.py --snug "$snug" --work "$work" --rows "$work/rows.jsonl" --threads "${THREADS:-2}" \
  --seconds "${SECONDS_A_POINT:-4}" ${QUICK:+--quick} --figures "$work/figures.json" --picture "$(basename "$report").svg" |
  tee "$report.md"
python3 bench/growth/plot.py "$work/figures.json" >"$report.svg"
