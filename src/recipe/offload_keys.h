#pragma once
// Keys of what lies away from the device and is brought in while it is used.

#include <vector>

#include "recipe/keys.h"

namespace snug {

std::vector<Key> offload_keys();
// Throws Error where a key asks for what there is none of.
void validate_offload(const Recipe& recipe);

}  // namespace snug
