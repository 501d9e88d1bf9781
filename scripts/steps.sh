# Sourced by test.sh and check.sh: steps that say when they began, work beside them, and a summary of a build's tests.

step() { printf '\n== %s (%d:%02d)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }

# begin NAME COMMAND…: beside the steps that follow; await NAME: until it has ended, and what it said. Steps wait for networks, for
# clocks and for the longest of their parts; this is work for that time. What is long and asks no clock says yield_cores first: it
# then has what the others leave of the cores.
beside=$(mktemp -d)
end_beside() {
  for process in "$beside"/*.process; do
    [ ! -e "$process" ] || kill -- "-$(cat "$process")" 2>/dev/null || true
  done
  rm -rf "$beside"
}
trap end_beside EXIT
begin() {
  local name=$1
  shift
  set -m  # a process group, to end all of it
  (set +e; (set -e; "$@") >"$beside/$name.log" 2>&1 </dev/null; echo $? >"$beside/$name.code") &
  set +m
  echo $! >"$beside/$name.process"
}
yield_cores() { chrt --idle --pid 0 "$BASHPID" || true; }
await() {
  wait "$(cat "$beside/$1.process")" || true
  cat "$beside/$1.log"
  return "$(cat "$beside/$1.code")"
}

# ctest in a build, three tests at a time, as some only wait and others take all cores: its summary with what was skipped, or where
# a test fails all that it says.
tests() {
  local log="$1/tests.log"
  ctest --test-dir "$1" --output-on-failure -j 3 --no-tests=error "${@:2}" >"$log" || { cat "$log"; return 1; }
  sed -n '/tests passed/,$p' "$log"
  local said="$1/Testing/Temporary/LastTest.log"
  if grep -q '^Note: This is test shard' "$said"; then  # entries are shares of many tests each
    echo "in them $(grep -c '^\[       OK \]' "$said") passed; skipped: $(sed -n 's/^\[  SKIPPED \] \(.*\) (.*/\1/p' "$said" | xargs)"
  fi
}

# build PRESET [cmake --build's words…]
build() {
  cmake --preset "$1" >/dev/null
  cmake --build --preset "$1" "${@:2}"
}
