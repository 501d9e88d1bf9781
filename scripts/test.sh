#!/usr/bin/env bash
# What shows a user that it works: the release build's tests, and every command of the documents. Each step says how long after the
# start it began.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/steps.sh

step "release: build"
build release

documents() {
  scripts/make_keys_doc.sh | diff docs/keys.md -
  python3 scripts/check_docs.py
  python3 scripts/check_schemas.py || [ $? -eq 77 ]
}
begin documents documents

step "release: tests"
tests build

step "documents: the key table as printed, every command as written; schemas: what the program says and reads"
await documents

step "done"
