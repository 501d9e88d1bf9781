#pragma once
// Blocks of operands as dense fp32 matrices in the workspace, and results back: tiles.h shared out over threads.

#include <cstdint>

#include "kernels/cpu/product.h"
#include "kernels/operands.h"

namespace snug::kernels {

// A block of rows x cols within a matrix stored with `stride` elements a row, or within its transpose (then `data` points to
// element [0, 0] of the block and stored rows are the block's columns).
struct BlockView {
  In data;
  int64_t stride = 0;
  bool transposed = false;
  int64_t rows = 0, cols = 0;
};

// Floats that a copied b block takes (kernels/cpu/product.h says how it lies).
int64_t copied_floats(Layout layout, int64_t depth, int64_t cols);
// dst[rows, cols], dense.
void copy_block(const BlockView& block, float* dst, int32_t threads);
// A b block (rows are the summed dimension) as `layout`, plain or packed.
void copy_operand(const BlockView& block, Layout layout, float* dst, int32_t threads);
// dst[r, c] (+)= src[r, c], src dense, dst with `stride` elements a row.
void store_block(const float* src, const Out& dst, int64_t stride, int64_t rows, int64_t cols, bool accumulate,
                 int32_t threads);
// dst[0, floats) = 0.
void fill_zero(float* dst, int64_t floats, int32_t threads);

}  // namespace snug::kernels
