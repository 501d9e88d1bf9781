#pragma once
// The rows of the key table alone (see keys.h).

#include <vector>

#include "recipe/keys.h"

namespace snug {

std::vector<Key> make_key_table();

}  // namespace snug
