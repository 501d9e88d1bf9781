#pragma once
// The blocks that a key of the recipe names.

#include <cstdint>
#include <vector>

#include "model/model_spec.h"

namespace snug {

// Ascending and each once. Throws Error naming the key for a layer that the model lacks.
std::vector<int64_t> named_layers(std::vector<int64_t> layers, const ModelSpec& spec, const char* key);

}  // namespace snug
