#!/usr/bin/env bash
# Larger grids than make test has time for: twice as many large models, and random combinations of techniques, planned and run, from the
# usual seed and from one that is drawn now. SEED: another one; COMBINATIONS: of each (200). Prints what ran, what was refused and why.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/steps.sh

drawn=${SEED:-$((RANDOM * 32768 + RANDOM))}
export SNUG_COMBINATIONS=${COMBINATIONS:-200}

step "release: build"
build release --target cli_tests

step "large models"
SNUG_EXHAUSTIVE=1 build/tests/cli_tests --gtest_filter='PlanIsRun.*half_a_gigabyte*'

for seed in 11 "$drawn"; do
  step "combinations: $SNUG_COMBINATIONS from seed $seed"
  SNUG_SEED=$seed build/tests/cli_tests --gtest_filter='PlanIsRun.*random_combinations*'
done

step "done"
