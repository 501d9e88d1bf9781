#pragma once
// What is asked of offload before it moves anything: which blocks have their frozen matrices on disk, and which gradients
// are sent there without being fetched first.

#include <cstdint>
#include <set>
#include <vector>

#include "model/model_spec.h"
#include "program/program.h"
#include "recipe/recipe.h"

namespace snug {

// Ascending; empty: all of them, or none where the recipe moves no weights. Throws Error.
std::vector<int64_t> layers_on_disk(const ModelSpec& spec, const Recipe& recipe);

// The layers at which a run of blocks that are all there, or all not, begins.
std::set<int64_t> borders_of(const std::vector<int64_t>& on_disk);

// Whether one body makes all that a step has of a far gradient's layer, so that it is cleared and summed up in a window.
bool comes_at_once(const Program& program, TensorId gradient);

}  // namespace snug
