#pragma once
// Frequencies of rotary position embedding and their scalings: linear, Llama 3, YaRN, LongRoPE.

#include <span>

#include "model/model_spec.h"
#include "run/executor.h"

namespace snug {

// out [half]: theta^(-i/half), scaled as transformers' modeling_rope_utils does for sequences of `seq_len` tokens.
void inverse_frequencies(const Rope& rope, int64_t seq_len, std::span<float> out);

// Fills the Program's tables of frequencies, as many as the model has, for sequences of `seq_len` tokens (0: the Program's).
void fill_inverse_frequencies(const ModelSpec& model, Executor& executor, int64_t seq_len = 0);

}  // namespace snug
