#pragma once
// Frequencies of rotary position embedding, with the scalings of Llama 3 and of linear interpolation.

#include <span>

#include "model/model_spec.h"

namespace snug {

// out [D/2]: theta^(-2i/D), scaled as transformers' modeling_rope_utils does.
void inverse_frequencies(const Rope& rope, std::span<float> out);

}  // namespace snug
