#pragma once
// Operands as bf16_tiles.h wants them: rows of bf16 pieces (a), pairs of bf16 pieces (b); and results back. One thread's
// share at a time.

#include <cstdint>

#include "kernels/operands.h"

namespace snug::kernels {

// Some rows and columns of a matrix stored with `stride` elements a row, or of its transpose (then a stored row is a
// column).
struct MatrixView {
  In data;  // element [0, 0]
  int64_t stride = 0;
  bool transposed = false;
  int64_t rows = 0, cols = 0;

  // The view that starts at [row, col] with these extents.
  MatrixView part(int64_t row, int64_t col, int64_t part_rows, int64_t part_cols) const;
};

// At most 32 rows -> high[32, padded_cols] and, `low` elements further on, their low piece (0: none, bf16 is exact). Rows
// and columns that are not there become zeros. padded_cols: cols rounded up to 32.
void split_rows(const MatrixView& a, uint16_t* high, int64_t low);

// At most 32 columns -> high[padded_rows / 2, 32, 2], likewise; padded_rows: rows rounded up to 32.
void pack_pairs(const MatrixView& b, uint16_t* high, int64_t low);

// rows[count, 32] of fp32 -> pairs [count / 2, 32, 2]; count is even.
void pair_panel(const float* rows, int64_t count, uint16_t* pairs);

// src[rows, cols] of fp32 -> bf16; cols is a multiple of 32.
void round_rows(const float* src, int64_t src_stride, int64_t rows, int64_t cols, uint16_t* dst, int64_t dst_stride);

// c (+)= scale * tile[32, 32], its first rows and cols.
void store_tile(const float* tile, const Out& c, int64_t c_stride, int64_t rows, int64_t cols, float scale, bool accumulate);

}  // namespace snug::kernels
