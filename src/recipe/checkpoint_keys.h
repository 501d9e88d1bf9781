#pragma once
// Keys of gradient checkpointing: whether, which blocks, and what of them.

#include <vector>

#include "recipe/keys.h"

namespace snug {

std::vector<Key> checkpoint_keys();
// Throws Error if the recipe's keys of checkpointing contradict one another.
void validate_checkpointing(const Recipe& recipe);

}  // namespace snug
