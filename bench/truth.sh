#!/usr/bin/env bash
# Published peaks of fine-tuning runs against `snug plan`: every row of measured_peaks.csv that states batch and length. Writes the
# tables of docs/truth.md, bench/results/2026-11-24-truth.json and the picture.
#   ROWS=FILE bench/truth.sh     where the rows are (they are not part of this repository); SNUG, a program other than build/snug
set -euo pipefail
cd "$(dirname "$0")/.."

snug=${SNUG:-build/snug}
rows=${ROWS:-../shared/data/measured_peaks.csv}

skip() { echo "truth: skipped, $*"; exit 0; }
[ -x "$snug" ] || skip "$snug is not there: make build"
[ -f "$rows" ] || skip "ROWS=$rows is not there"

python3 bench/truth/truth.py "$rows" --snug "$snug" --json bench/results/2026-11-24-truth.json --docs docs/truth.md --picture docs/images/truth.svg "$@"
