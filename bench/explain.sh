#!/usr/bin/env bash
# A large memory snapshot: read and replayed (seconds, and the most memory held, VmHWM), and a page of a million events in
# headless Chromium (load, frames).
#   bench/explain.sh      BYTES, of the first; EVENTS, of the second; PYTHON, that makes them; BROWSER; BUILD, a configured build;
#                         TMPDIR, where the files lie
# Required: 1 GB in at most 10 s and 300 MB; frames of 16 ms, none above 33 ms.
set -euo pipefail
cd "$(dirname "$0")/.."

bytes=${BYTES:-1000000000}
events=${EVENTS:-1000000}
build=${BUILD:-build}
python=${PYTHON:-python3}
browser=${BROWSER:-/usr/bin/chromium}
free=$(df --output=avail -B1 "${TMPDIR:-/tmp}" | tail -n 1)
if ((free < bytes * 3 / 2)); then
  echo "explain: ${TMPDIR:-/tmp} has $free bytes free, $((bytes * 3 / 2)) are needed; set TMPDIR or BYTES" >&2
  exit 1
fi
[ -x "$build/bench/read_snapshot" ] || { echo "explain: $build/bench/read_snapshot is missing; run make build" >&2; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/snug-explain.XXXXXX")
trap 'rm -rf "$work"' EXIT

"$python" bench/explain/make_snapshot.py --bytes "$bytes" "$work/snapshot.pickle" >/dev/null
stat -c '%s bytes' "$work/snapshot.pickle"
for _ in 1 2 3; do "$build/bench/read_snapshot" "$work/snapshot.pickle"; done
for view in html trace; do
  "$python" bench/explain/run_explain.py "$build/snug" "$work/snapshot.pickle" "--$view" "$work/view"
  stat -c "--$view: %s bytes" "$work/view"
done
rm "$work"/*

if [ ! -x "$browser" ]; then
  echo "explain: no $browser, so no page is measured" >&2
  exit 0
fi
"$python" bench/explain/make_snapshot.py --bytes $((events * 263)) "$work/snapshot.pickle" >/dev/null
"$build/snug" explain "$work/snapshot.pickle" --html "$work/page.html" >/dev/null
stat -c 'page: %s bytes' "$work/page.html"
for _ in 1 2 3; do BROWSER=$browser "$python" bench/explain/measure_page.py "$work/page.html"; done
