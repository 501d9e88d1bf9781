#!/usr/bin/env bash
# Prints docs/keys.md from `snug help keys`: make_keys_doc.sh [SNUG] > docs/keys.md. scripts/test.sh checks that the two agree.
set -euo pipefail
cd "$(dirname "$0")/.."
snug=${1:-build/snug}

cat <<'HEADER'
# Keys

Every key of a recipe, with its default. In YAML as `key: value`, on the command line as `--key value` with dashes or
underscores; names in the last column mean the same key. Booleans take `true` or `false`, or stand alone as a flag. `auto` lets
snug decide, and the plan prints what it chose. Several values are a YAML list, or one text with commas.

This page is `snug help keys`, written down by `scripts/make_keys_doc.sh`.

| key | default | meaning | also |
|---|---|---|---|
HEADER
"$snug" help keys | awk '
  function code(names) { gsub(/, /, "`, `", names); return "`" names "`" }
  /^[^ ]/ { split($0, head, " = "); key = head[1]; value = head[2] == "" ? "" : code(head[2]); next }
  { sub(/^ +/, ""); also = ""
    if (at = index($0, "  Also: ")) { also = code(substr($0, at + 8)); $0 = substr($0, 1, at - 1) }
    gsub(/\|/, "\\|"); print "| `" key "` | " value " | " $0 " | " also " |" }'
