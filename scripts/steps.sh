# Sourced by test.sh and check.sh: steps that say when they began, and a summary of a build's tests.

step() { printf '\n== %s (%d:%02d)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }

# ctest in a build: its summary with what was skipped, or where a test fails all that it says.
tests() {
  local log="$1/tests.log"
  ctest --test-dir "$1" --output-on-failure -j 2 --no-tests=error "${@:2}" >"$log" || { cat "$log"; return 1; }
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
