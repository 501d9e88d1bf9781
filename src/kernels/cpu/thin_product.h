#pragma once
// Products with one short dimension, as LoRA has them, in fp32 straight from the registers: they move more than they
// multiply, so that packing operands for a general product would cost more than the product.

#include <cstdint>

#include "kernels/ops/matmul.h"

namespace snug::kernels {

// Either c[m, n] (+)= scale * a[m, k] b[k, n] with short k, a and b fp32; or, with a transposed and c fp32, the sum over
// many tokens k of a[k, m]^T b[k, n] with m or n short, whose short operand is fp32.
void thin_product(const Matmul& op);
// What of the workspace it takes: b turned, where it comes as [n, k].
int64_t thin_workspace_bytes(const Matmul& op);

}  // namespace snug::kernels
