#!/usr/bin/env bash
# clang_in_place.sh [ccache] COMPILER WORDS…: compiles with clang++ what the build gives to GCC, whose objects and sanitizers it is
# linked with: GCC's have no word for one of clang's checks (function), clang does not know all of GCC's warnings, nor the macro that
# tells sources of the sanitizer, nor its OpenMP.
set -euo pipefail
launcher=()
if [ "$(basename "$1")" = ccache ]; then
  launcher=("$1")
  shift
fi
shift
macro=__SANITIZE_ADDRESS__
case " $* " in *" -fsanitize=thread "*) macro=__SANITIZE_THREAD__ ;; esac
exec "${launcher[@]}" clang++ "$@" -Qunused-arguments -Wno-unknown-warning-option -fno-sanitize=function -fno-openmp -D$macro=1
