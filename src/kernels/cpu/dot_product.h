#pragma once
// Products with a few rows: the next token's. Each weight is used once or a few times, so memory is what limits them; the
// weights are read where they lie, in the order in which they lie, by threads that share the columns of the result. Nothing
// is copied and no workspace is needed.

#include "kernels/ops/matmul.h"

namespace snug::kernels {

constexpr int64_t kFewRows = 4;

// c[m, n] (+)= scale * a[m, k] op(b)[k, n], m <= kFewRows. Every sum has one order, whatever the threads.
void dot_product(const Matmul& op);
// Throws Error for a product of another form.
void require_few_rows(const Matmul& op);

}  // namespace snug::kernels
