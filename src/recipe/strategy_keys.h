#pragma once
// Keys of when a run saves and evaluates, and of what evaluations decide.

#include <vector>

#include "recipe/keys.h"

namespace snug {

std::vector<Key> strategy_keys();
// Throws Error where evaluations are to decide that there are none of, or whose weights are not kept.
void validate_strategies(const Recipe& recipe);

}  // namespace snug
