#!/usr/bin/env bash
# Tokenizers: seconds to read a tokenizer.json of Gemma 3's size, and megabytes encoded in a second by one and by two threads, for the
# published tokenizers and, with Qwen3's tables, for the ways in which other families cut words.
#   bench/tokenizer.sh      SNUG_SHARED, the directory with data/tokenizers (default ../shared); TOKENIZER, the program; ROUNDS;
#                           RESULTS=DIRECTORY
# The texts: licences in English, Python's library, Chinese characters (made), the mixed text of tests/oracle/tokenizer_mixture.py.
set -euo pipefail
cd "$(dirname "$0")/.."

export TOKENIZER=${TOKENIZER:-build/bench/tokenizer} ROUNDS=${ROUNDS:-5}
shared=${SNUG_SHARED:-../shared}/data/tokenizers
results=${RESULTS:-bench/results}
[ -x "$TOKENIZER" ] || { echo "tokenizer: $TOKENIZER is missing; run make build" >&2; exit 1; }
[ -d "$shared" ] || { echo "tokenizer: there are no tokenizers at $shared; set SNUG_SHARED" >&2; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/snug-tokenizer.XXXXXX")
trap 'rm -rf "$work"' EXIT

python3 bench/common/tokenizer_files.py "$shared" "$work"
mkdir -p "$results"
report=$results/$(date +%F)-$(python3 bench/common/machine.py)-tokenizer.md
{
  echo "# Tokenizers"
  echo
  python3 bench/common/machine.py --long
  echo "- median of $ROUNDS rounds; processor seconds are those of all threads, which other work on the machine disturbs less"
  echo
  python3 - "$work" "$shared" <<'PYTHON'
import os, pathlib, re, resource, statistics, subprocess, sys, time

program, rounds = os.environ["TOKENIZER"], int(os.environ["ROUNDS"])
work, shared = map(pathlib.Path, sys.argv[1:])


def load(path):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run([program, "load", path], check=True, capture_output=True)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def speed(path, text):
    line = subprocess.run([program, "speed", path, text, "2"], check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    return tuple(map(float, re.fullmatch(r"(\S+) MB/s on 2 threads, (\S+) MB a processor second \((\S+) with spans\).*", line).groups()))


def medians(measure):
    return [statistics.median(column) for column in zip(*(measure() for _ in range(rounds)))]


print("Reading (the whole process):\n\n| | MB | seconds | processor seconds |\n|---|---:|---:|---:|")
for name, path in [("of Gemma 3's size: 262,144 tokens, 514,906 merges", work / "gemma_size.json"), ("Qwen3", shared / "qwen3/tokenizer.json")]:
    wall, busy = medians(lambda: load(path))
    print(f"| {name} | {path.stat().st_size / 1e6:.1f} | {wall:.2f} | {busy:.2f} |")

texts = ["english", "code", "chinese", "mixture", "all"]
print("\nEncoding, megabytes in a second of two threads (and in a processor second; the same with spans, on one thread):\n")
print(f"| | {' | '.join(texts)} | all, with spans |\n|---|{'---:|' * (len(texts) + 1)}")
published = ["gpt2", "smollm2", "qwen2.5", "qwen3", "mistral-v0.1", "tinyllama"]
for name, path in [(name, shared / name) for name in published] + [(p.stem, p) for p in sorted(work.glob("like *.json"))]:
    figures = [medians(lambda: speed(path, work / f"{text}.txt")) for text in texts]
    print(f"| {name} | {' | '.join(f'{wall:.0f} ({busy:.0f})' for wall, busy, _ in figures)} | ({figures[-1][2]:.0f}) |", flush=True)
print("\n`like X`: Qwen3's tables behind X's pre-tokenizer.")
PYTHON
} | tee "$report"
