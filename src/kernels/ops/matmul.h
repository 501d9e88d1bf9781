#pragma once

#include "kernels/binding.h"
#include "op/product.h"

namespace snug::kernels {

// c[m, n] (+)= scale * op(a)[m, k] op(b)[k, n].
// a is [m, k], or [k, m] if transpose_a; b is [k, n], or [n, k] if transpose_b. f32, bf16 or f16 each.
// cut.rows/cols/depth are block sizes. In fp32, operands in bf16 or f16 are widened block by block into the workspace;
// in bf16 (cut.arithmetic, base/arithmetic.h) one of the two must be bf16 or f16.
struct Matmul {
  In a, b;
  Out c;
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;
  float scale = 1.0F;
  Workspace workspace;
  Cut cut;
};

template <>
inline Matmul bind<Matmul>(const OpView& op) {
  const ProductShape shape = product_shape(op);
  return {.a = in(op, Slot::a),
          .b = matrix(op, Slot::b),
          .c = out(op, Slot::c),
          .m = shape.m,
          .n = shape.n,
          .k = shape.k,
          .transpose_a = shape.transpose_a,
          .transpose_b = shape.transpose_b,
          .accumulate = shape.accumulate,
          .scale = static_cast<float>(op.attributes.scale),
          .workspace = workspace(op),
          .cut = op.cut};
}

}  // namespace snug::kernels
