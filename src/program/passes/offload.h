#pragma once
// Which blocks have their frozen matrices on disk.

#include <cstdint>
#include <set>
#include <vector>

#include "model/model_spec.h"
#include "recipe/recipe.h"

namespace snug {

// Ascending; empty: all of them, or none where the recipe moves no weights. Throws Error.
std::vector<int64_t> layers_on_disk(const ModelSpec& spec, const Recipe& recipe);

// The layers at which a run of blocks that are all there, or all not, begins.
std::set<int64_t> borders_of(const std::vector<int64_t>& on_disk);

}  // namespace snug
