#pragma once
// Keys of quantized base weights, under the names of transformers' BitsAndBytesConfig.

#include <vector>

#include "recipe/keys.h"

namespace snug {

std::vector<Key> quantize_keys();
// Which also speaks of them: method: qlora.
Key method_key();
// Throws Error if the recipe's keys of quantization contradict one another.
void validate_quantization(const Recipe& recipe);

}  // namespace snug
