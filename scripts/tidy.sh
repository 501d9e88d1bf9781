#!/usr/bin/env bash
# clang-tidy over the rooms, with .clang-tidy: tidy.sh [ROOM…] (default: all). Sources are read several at a time, as the build puts
# them together: the headers are most of the work. Vector code is read for one instruction set, AVX-512, of those that the
# build compiles it for.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build-tidy
cmake --preset release -B "$build" >/dev/null

# The compile database's files of the rooms asked for, one a line.
files() {
  python3 - "$build" "$@" <<'PYTHON'
import json, pathlib, re, sys
build, rooms = pathlib.Path(sys.argv[1]), set(sys.argv[2:])
for entry in json.loads((build / "compile_commands.json").read_text()):
    together = re.search(r"/snug_(\w+)\.dir/Unity/", entry["file"])
    alone = re.search(r"/src/(\w+)/", entry["file"])
    room = (together or alone)[1] if together or alone else "kernels" if "/vector_units/" in entry["file"] else None
    room = "measure" if room == "null_device" else room  # whose library it is
    if room and (not rooms or room in rooms):
        print(entry["file"])
PYTHON
}

# GCC's switches are not all clang's. Included sources are no headers, whatever their place says.
files "$@" | sort -u | xargs -n 1 -P "$(nproc)" clang-tidy -quiet -p "$build" --config-file=.clang-tidy --extra-arg=-Wno-unknown-warning-option --extra-arg=-Qunused-arguments \
  --extra-arg=-DHWY_COMPILE_ONLY_STATIC --extra-arg=-march=skylake-avx512 --checks=-bugprone-suspicious-include,-misc-definitions-in-headers 2>/dev/null
