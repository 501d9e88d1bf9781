#pragma once
// How one matmul runs in fp32: its blocks, where they lie, and the products of whole and last blocks.

#include <array>
#include <compare>
#include <map>

#include "base/dtype.h"
#include "kernels/cpu/product.h"

namespace snug::kernels {

// Everything that decides how a product runs, pointers aside.
struct MatmulCase {
  DType a, b, c;
  int64_t m, n, k;
  bool transpose_a, transpose_b, accumulate;
  float scale;
  int64_t rows, cols, depth, bytes;
  int32_t threads;
  auto operator<=>(const MatmulCase&) const = default;
};

struct MatmulPlan {
  MatmulCase of;
  int64_t rows = 0;  // a block; fewer than asked where oneDNN needs more scratch than there is
  bool a_in_place = false, b_in_place = false, c_in_place = false;
  Layout b_layout = Layout::plain;
  int64_t b_at = 0, c_at = 0, scratch_at = 0;  // bytes into the workspace; the a block is first
  // [last row block][last column block][last depth block][accumulates]
  std::array<std::array<std::array<std::array<Product*, 2>, 2>, 2>, 2> products{};
};

struct MatmulPlans {
  std::map<MatmulCase, MatmulPlan> by_case;
};

}  // namespace snug::kernels
