#!/usr/bin/env bash
# What shows a user that it works: the release build's tests, then every command of the documents. Each step says how long after the
# start it began.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/steps.sh

step "release: build"
build release

step "release: tests"
tests build

step "documents: the key table as printed, every command as written"
scripts/make_keys_doc.sh | diff docs/keys.md -
python3 scripts/check_docs.py

step "schemas: what the program says and reads"
python3 scripts/check_schemas.py || [ $? -eq 77 ]

step "done"
