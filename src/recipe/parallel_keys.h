#pragma once
// Keys of runs by several processes.

#include <vector>

#include "recipe/keys.h"

namespace snug {

std::vector<Key> parallel_keys();

// Throws Error where the recipe asks for what ranks cannot share.
void validate_parallel(const Recipe& recipe);

}  // namespace snug
