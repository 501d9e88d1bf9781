#include "kernels/cpu/panel_product.h"

#include <algorithm>
#include <cstdint>

#include "base/checked.h"
#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/tiles.h"
#include "targets/cpu/products.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

#ifndef SNUG_KERNELS_CPU_PANEL_PRODUCT_PART
#define SNUG_KERNELS_CPU_PANEL_PRODUCT_PART
namespace snug::kernels {

// Some rows of a against a part of a panel of b.
struct PanelPart {
  const float* a = nullptr;  // [rows, depth], a_stride numbers a row
  int64_t a_stride = 0;
  const float* b = nullptr;  // [depth, cols], b_stride numbers a row
  int64_t b_stride = 0;
  float* c = nullptr;  // [rows, cols], c_stride numbers a row
  int64_t c_stride = 0;
  int64_t rows = 0, cols = 0, depth = 0;  // depth <= kDepth
  bool copies_b = false;                  // first
  bool adds = false;
  float scale = 1.0F;
};

constexpr int64_t kDepth = 256;

}  // namespace snug::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

using Lanes = HighwayLanes;

constexpr int kMostRows = 6;  // of a tile: 12 sums and what they need fill 16 registers
constexpr int kVectors = Lanes::kWidth == 4 ? 4 : 2;

// ROWS x VECTORS of c, the last of `cols` columns. Of b whole vectors can be read in every row.
template <int ROWS, int VECTORS>
HWY_INLINE void tile(const PanelPart& part, const float* a, const float* b, float* c, int64_t cols) {
  Lanes::Vec sums[ROWS][VECTORS];
  SNUG_UNROLL for (int r = 0; r < ROWS; ++r) SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) sums[r][v] = Lanes::set(0.0F);
  for (int64_t k = 0; k < part.depth; ++k, b += part.b_stride) {
    Lanes::Vec line[VECTORS];
    SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) line[v] = Lanes::whole(b + v * Lanes::kWidth);
    SNUG_UNROLL for (int r = 0; r < ROWS; ++r) {
      const auto factor = Lanes::set(a[r * part.a_stride + k]);
      SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) sums[r][v] = Lanes::fma(factor, line[v], sums[r][v]);
    }
  }
  const auto scale = Lanes::set(part.scale);
  SNUG_UNROLL for (int r = 0; r < ROWS; ++r) {
    SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) {
      const int64_t at = v * Lanes::kWidth;
      if (at >= cols) continue;
      float* const row = c + r * part.c_stride;
      auto value = Lanes::mul(sums[r][v], scale);
      if (part.adds) value = Lanes::add(value, Lanes::load(row, at, cols));
      Lanes::store(value, row, at, cols);
    }
  }
}

template <int ROWS>
HWY_NOINLINE void rows_of(const PanelPart& part, const float* a, float* c) {
  int64_t col = 0;
  for (; col + Lanes::kWidth < part.cols; col += kVectors * Lanes::kWidth)
    tile<ROWS, kVectors>(part, a, part.b + col, c + col, part.cols - col);
  if (col < part.cols) tile<ROWS, 1>(part, a, part.b + col, c + col, part.cols - col);
}

template <int ROWS>
HWY_INLINE void last_rows(const PanelPart& part, int64_t rows, const float* a, float* c) {
  if constexpr (ROWS > 0) {
    if (rows == ROWS) return rows_of<ROWS>(part, a, c);
    last_rows<ROWS - 1>(part, rows, a, c);
  }
}

void multiply_rows(const PanelPart& part) {
  int64_t r = 0;
  for (; r + kMostRows <= part.rows; r += kMostRows)
    rows_of<kMostRows>(part, part.a + r * part.a_stride, part.c + r * part.c_stride);
  last_rows<kMostRows - 1>(part, part.rows - r, part.a + r * part.a_stride, part.c + r * part.c_stride);
}

// Half a panel at a time, so that 32 KiB of stack will do.
HWY_NOINLINE void multiply_copied(const PanelPart& whole) {
  constexpr int64_t kCols = kPanelCols / 2;
  alignas(64) float copied[kDepth * kCols];
  for (int64_t col = 0; col < whole.cols; col += kCols) {
    PanelPart part = whole;
    part.cols = HWY_MIN(kCols, whole.cols - col);
    for (int64_t k = 0; k < part.depth; ++k) {
      float* const end = std::copy_n(part.b + col + k * part.b_stride, part.cols, copied + k * kCols);
      std::fill(end, copied + (k + 1) * kCols, 0.0F);
    }
    part.b = copied;
    part.b_stride = kCols;
    part.c += col;
    multiply_rows(part);
  }
}

void multiply_part(const PanelPart& part) { part.copies_b ? multiply_copied(part) : multiply_rows(part); }

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(multiply_part);

namespace {

// A tile's columns of a part kDepth deep are half of a first cache of 32 KiB, and kRows of a so deep a good third of a
// second one of 512. Measured on Zen 1, two cores: 0.86 to 1.2 of oneDNN's speed where it packs both; half as deep 0.74 to
// 0.9.
constexpr int64_t kRows = 192;
constexpr int64_t kRowGrain = 6;
// Rows of b as far apart as its columns are many may all fall into a few sets of the cache: from this many of a on a copy
// pays.
constexpr int64_t kFewRows = 12;

OperandB operand(Layout layout) {
  switch (layout) {
    case Layout::plain: break;
    case Layout::transposed: return OperandB::transposed;
    case Layout::packed: return OperandB::packed;
  }
  return OperandB::plain;
}

// Where the parts of the scratch lie, in floats: [for each thread: a panel of b][for each thread: rows of c].
struct Scratch {
  int64_t panel = 0, rows = 0, threads;
  explicit Scratch(const ProductKey& of) : threads(of.threads) {
    if (copies_panel(of.m, of.n, of.k, operand(of.b), of.threads))
      panel = align_up(panel_depth(of.k), kPanelDepth) * kPanelCols;
    rows = gathered_rows(of.m, of.n, of.k, of.accumulate, of.threads) * std::min(kPanelCols, of.n);
  }
  int64_t floats() const { return threads * (panel + rows); }
};

// The rows and panels that one thread multiplies.
struct Share {
  int64_t first_row, last_row, first_panel, last_panel;
};

class PanelProduct {
 public:
  PanelProduct(const ProductKey& shape, const Scratch& sizes, const float* a, const float* b, float* c)
      : shape_(shape),
        a_(a),
        b_(b),
        c_(c),
        copies_(sizes.panel > 0),
        adds_(shape.accumulate && sizes.rows == 0),
        depth_(panel_depth(shape.k)) {}

  // Each panel is copied once.
  void multiply(const Share& share, float* panel) const {
    for (int64_t col = share.first_panel * kPanelCols; col < share.last_panel * kPanelCols; col += kPanelCols) {
      for (int64_t d = 0; d < shape_.k; d += depth_) {
        if (copies_) copy(col, d, panel);
        for (int64_t r = share.first_row; r < share.last_row; r += kRows)
          multiply_rows(r, std::min(kRows, share.last_row - r), col, d, panel, c_ + r * shape_.n + col, shape_.n);
      }
    }
  }

  // Rows [first, first + rows) of a panel's columns, over all depths, then added to c.
  void gather(int64_t first, int64_t rows, int64_t col, float* panel, float* sums) const {
    for (int64_t d = 0; d < shape_.k; d += depth_) {
      if (copies_) copy(col, d, panel);
      multiply_rows(first, rows, col, d, panel, sums, cols(0));
    }
    for (int64_t r = 0; r < rows; ++r)
      store_row(sums + r * cols(0), {c_ + (first + r) * shape_.n + col, DType::f32}, cols(col), true);
  }

 private:
  int64_t cols(int64_t first) const { return std::min(kPanelCols, shape_.n - first); }
  int64_t depth(int64_t d) const { return std::min(depth_, shape_.k - d); }

  void copy(int64_t col, int64_t d, float* to) const {
    const int64_t width = cols(col);
    if (width < kPanelCols) std::fill_n(to, depth(d) * kPanelCols, 0.0F);  // whole vectors are read
    if (shape_.b == Layout::transposed) {
      transpose_tile({b_ + col * shape_.k + d, DType::f32}, shape_.k, to, kPanelCols, width, depth(d));
    } else {
      copy_tile({b_ + d * shape_.n + col, DType::f32}, shape_.n, to, kPanelCols, depth(d), width);
    }
  }

  // NOLINTNEXTLINE(readability-non-const-parameter): `part` writes through c
  void multiply_rows(int64_t row, int64_t rows, int64_t col, int64_t d, const float* panel, float* c,
                     int64_t c_stride) const {
    const bool is_panel = copies_ || shape_.b == Layout::packed;
    const float* b = panel;
    if (!copies_) b = b_ + (is_panel ? col * align_up(shape_.k, kPanelDepth) + d * kPanelCols : d * shape_.n + col);
    PanelPart part{.a_stride = shape_.k,
                   .b_stride = is_panel ? kPanelCols : shape_.n,
                   .c = c,
                   .c_stride = c_stride,
                   .rows = rows,
                   .cols = cols(col),
                   .scale = shape_.scale};
    part.copies_b = !is_panel && (part.cols < kPanelCols || rows > kFewRows);
    for (int64_t at = 0; at < depth(d); at += kDepth) {
      part.a = a_ + row * shape_.k + d + at;
      part.b = b + at * part.b_stride;
      part.depth = std::min(kDepth, depth(d) - at);
      part.adds = d + at > 0 || adds_;
      HWY_DYNAMIC_DISPATCH(multiply_part)(part);
    }
  }

  const ProductKey& shape_;
  const float *a_, *b_;
  float* c_;
  bool copies_, adds_;  // adds: to c from the first depth on
  int64_t depth_;       // of a panel
};

// How many of the threads divide the rows; the others divide the panels.
int32_t row_parts(int64_t m, int64_t panels, int32_t threads) {
  int32_t best = 1;
  int64_t least = INT64_MAX;
  for (int32_t parts = 1; parts <= threads; ++parts) {
    const int64_t rows = (m + parts - 1) / parts;
    const int64_t work = align_up(rows, kRowGrain) * ((panels + threads / parts - 1) / (threads / parts));
    if (work >= least) continue;
    least = work;
    best = parts;
  }
  return best;
}

}  // namespace

int64_t panel_scratch_bytes(const ProductKey& shape) {
  return Scratch(shape).floats() * static_cast<int64_t>(sizeof(float));
}

void panel_product(const ProductKey& shape, const float* a, const float* b, float* c, float* scratch) {
  const Scratch sizes(shape);
  const PanelProduct product(shape, sizes, a, b, c);
  const int64_t panels = (shape.n + kPanelCols - 1) / kPanelCols;
  if (sizes.rows > 0) {  // as many as share out evenly
    const int64_t most = sizes.rows / std::min(kPanelCols, shape.n), blocks = (shape.m + most - 1) / most;
    for_parts(shape.threads, panels * blocks, 1, [&](int32_t worker, int64_t begin, int64_t end) {
      float* const sums = scratch + sizes.threads * sizes.panel + worker * sizes.rows;
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t row = unit / panels * most;
        product.gather(row, std::min(most, shape.m - row), unit % panels * kPanelCols, scratch + worker * sizes.panel, sums);
      }
    });
    return;
  }
  const int64_t groups = (shape.m + kRowGrain - 1) / kRowGrain;
  const int32_t of_rows = row_parts(shape.m, panels, shape.threads);
  const int32_t of_panels = shape.threads / of_rows;
  for_parts(of_rows * of_panels, of_rows * of_panels, 1, [&](int32_t worker, int64_t begin, int64_t end) {
    if (begin == end) return;
    const int64_t row = worker % of_rows, panel = worker / of_rows;
    product.multiply({.first_row = groups * row / of_rows * kRowGrain,
                      .last_row = std::min(shape.m, groups * (row + 1) / of_rows * kRowGrain),
                      .first_panel = panels * panel / of_panels,
                      .last_panel = panels * (panel + 1) / of_panels},
                     scratch + worker * sizes.panel);
  });
}

}  // namespace snug::kernels
#endif  // HWY_ONCE
