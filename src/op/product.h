#pragma once
// The matrix product that an op asks for.

#include <cstdint>

#include "base/arithmetic.h"
#include "base/dtype.h"
#include "op/view.h"

namespace snug {

// c[m, n] = op(a)[m, k] op(b)[k, n] as its kernel sees it.
struct ProductShape {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;
  DType a = DType::f32, b = DType::f32, c = DType::f32;  // of a quantized b: what its numbers are rounded to
  bool quantized = false;                                // b is codes, copied as numbers
  bool scaled = false;
  bool turned = false;                       // c is stored [n, m]
  Arithmetic arithmetic = Arithmetic::fp32;  // the target's to choose
};

// Of a matmul. Operands may have more axes than two ([B, T, H, D] is [M, H*D]); the one that is a weight says where rows
// end.
ProductShape product_shape(const OpView& op);

}  // namespace snug
