#pragma once
// Softmax over one row of logits that comes in panels: what one thread does for one row of one panel.

#include <cstdint>

namespace snug::kernels {

float max_of(const float* x, int64_t n);
// Sum of exp(x[i] - shift).
float sum_of_exp(const float* x, int64_t n, float shift);
// x[i] = exp(x[i] - shift) * factor * (1 - (x[i] * inverse_cap)^2): the last is what a softcap's slope takes off; 0 without.
// Returns the sum of exp(x[i] - shift).
float exp_in_place(float* x, int64_t n, float shift, float factor, float inverse_cap);
// x[i] = cap * tanh(x[i] / cap).
void cap_in_place(float* x, int64_t n, float cap);

}  // namespace snug::kernels
