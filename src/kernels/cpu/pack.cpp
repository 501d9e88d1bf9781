#include "kernels/cpu/pack.h"

#include <algorithm>

#include "base/checked.h"
#include "kernels/cpu/tiles.h"

namespace snug::kernels {
namespace {

constexpr int64_t kStrip = 64;  // rows or columns a thread takes at a time

// The rows [first, first + count) of the block, all columns.
void copy_rows(const BlockView& block, int64_t first, int64_t count, float* dst, int64_t dst_stride) {
  const In start = at(block.data, block.transposed ? first : first * block.stride);
  if (block.transposed) return transpose_tile(start, block.stride, dst, dst_stride, block.cols, count);
  copy_tile(start, block.stride, dst, dst_stride, count, block.cols);
}

BlockView columns(const BlockView& block, int64_t first, int64_t count) {
  BlockView part = block;
  part.data = at(block.data, block.transposed ? first * block.stride : first);
  part.cols = count;
  return part;
}

}  // namespace

int64_t copied_floats(Layout layout, int64_t depth, int64_t cols) {
  return layout == Layout::packed ? align_up(depth, kPanelDepth) * align_up(cols, kPanelCols) : depth * cols;
}

void copy_block(const BlockView& block, float* dst, [[maybe_unused]] int32_t threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t r = 0; r < block.rows; r += kStrip) {
    copy_rows(block, r, std::min(kStrip, block.rows - r), dst + r * block.cols, block.cols);
  }
}

void copy_operand(const BlockView& block, Layout layout, float* dst, [[maybe_unused]] int32_t threads) {
  if (layout != Layout::packed) return copy_block(block, dst, threads);
  const int64_t depth = align_up(block.rows, kPanelDepth);
#pragma omp parallel for num_threads(threads) schedule(static) collapse(2)
  for (int64_t c = 0; c < block.cols; c += kPanelCols) {
    for (int64_t r = 0; r < depth; r += kStrip) {
      const int64_t cols = std::min(kPanelCols, block.cols - c);
      const int64_t rows = std::min(kStrip, block.rows - r);
      const int64_t padded = std::min(kStrip, depth - r);
      float* to = dst + c * depth + r * kPanelCols;
      if (cols < kPanelCols || rows < padded) std::fill_n(to, padded * kPanelCols, 0.0F);
      copy_rows(columns(block, c, cols), r, rows, to, kPanelCols);
    }
  }
}

void store_block(const float* src, const Out& dst, int64_t stride, int64_t rows, int64_t cols, bool accumulate,
                 [[maybe_unused]] int32_t threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t r = 0; r < rows; ++r) store_row(src + r * cols, at(dst, r * stride), cols, accumulate);
}

void fill_zero(float* dst, int64_t floats, [[maybe_unused]] int32_t threads) {
  constexpr int64_t kChunk = 16384;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < floats; i += kChunk) std::fill_n(dst + i, std::min(kChunk, floats - i), 0.0F);
}

}  // namespace snug::kernels
