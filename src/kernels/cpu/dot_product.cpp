#include "kernels/cpu/dot_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dot_product.cpp"

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"

#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

using Lanes = HighwayLanes;

// c[at …] (+)= scale * sums. Its type is looked up here, once for a row of a block, so that no loop is compiled for each
// type of c.
HWY_NOINLINE void add_up(const Matmul& op, int64_t at, const float* sums, int64_t count) {
  with_type(op.c, [&](auto* c) HWY_ATTR {
    for (int64_t j = 0; j < count; ++j) {
      const float value = op.scale * sums[j];
      put(op.accumulate ? value + number(c[at + j]) : value, c + at + j);
    }
  });
}

// What a row leaves over after its last whole vector: out of line, once for each type and not for each place that ends a
// row.
template <class T>
HWY_NOINLINE Lanes::Vec rest_of(const T* row, int64_t i, int64_t n) {
  return Lanes::load(row, i, n);
}

// ---- b [n, k]: rows of weights, each a dot product with every row of a

// ROWS of a by COLS rows of b from `col` on.
template <int ROWS, int COLS, class A, class B>
HWY_INLINE void dot_block(const Matmul& op, const A* a, const B* b, int64_t col) {
  constexpr int64_t kWidth = Lanes::kWidth;
  const B* const rows = b + col * op.k;
  Lanes::Vec sums[ROWS][COLS];
  SNUG_UNROLL for (int r = 0; r < ROWS; ++r) SNUG_UNROLL for (int j = 0; j < COLS; ++j) sums[r][j] = Lanes::set(0.0F);
  int64_t i = 0;
  for (; i + kWidth <= op.k; i += kWidth) {
    Lanes::Vec x[ROWS];
    SNUG_UNROLL for (int r = 0; r < ROWS; ++r) x[r] = Lanes::whole(a + r * op.k + i);
    SNUG_UNROLL for (int j = 0; j < COLS; ++j) {
      const auto w = Lanes::whole(rows + j * op.k + i);
      SNUG_UNROLL for (int r = 0; r < ROWS; ++r) sums[r][j] = Lanes::fma(x[r], w, sums[r][j]);
    }
  }
  if (i < op.k) {
    SNUG_UNROLL for (int j = 0; j < COLS; ++j) {
      const auto w = rest_of(rows + j * op.k, i, op.k);
      SNUG_UNROLL for (int r = 0; r < ROWS; ++r) sums[r][j] = Lanes::fma(rest_of(a + r * op.k, i, op.k), w, sums[r][j]);
    }
  }
  SNUG_UNROLL for (int r = 0; r < ROWS; ++r) {
    float values[COLS];
    SNUG_UNROLL for (int j = 0; j < COLS; ++j) values[j] = Lanes::sum(sums[r][j]);
    add_up(op, r * op.n + col, values, COLS);
  }
}

template <int ROWS>
void dot_columns_of(const Matmul& op, int64_t begin, int64_t end) {
  constexpr int kCols = 4;
  with_types(op.a, op.b, [&](auto* a, auto* b) HWY_ATTR {
    int64_t col = begin;
    for (; col + kCols <= end; col += kCols) dot_block<ROWS, kCols>(op, a, b, col);
    for (; col < end; ++col) dot_block<ROWS, 1>(op, a, b, col);
  });
}

void dot_columns(const Matmul& op, int64_t begin, int64_t end) {
  switch (op.m) {
    case 1: return dot_columns_of<1>(op, begin, end);
    case 2: return dot_columns_of<2>(op, begin, end);
    case 3: return dot_columns_of<3>(op, begin, end);
    default: return dot_columns_of<4>(op, begin, end);
  }
}

// ---- b [k, n]: sums of its rows, each times a number of a

// ROWS of c by VECTORS from `col` on; WHOLE: no vector ends within. Rows of b are far apart: fetched by hand.
template <int ROWS, int VECTORS, bool WHOLE, class A, class B>
HWY_INLINE void sum_block(const Matmul& op, const A* a, const B* b, int64_t col) {
  constexpr int64_t kAhead = 16;
  Lanes::Vec sums[ROWS][VECTORS];
  SNUG_UNROLL for (int r = 0; r < ROWS; ++r) SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) sums[r][v] = Lanes::set(0.0F);
  for (int64_t k = 0; k < op.k; ++k) {
    const B* const row = b + k * op.n;
    Lanes::Vec line[VECTORS];
    SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) {
      const int64_t at = col + v * Lanes::kWidth;
      if constexpr (WHOLE) {
        line[v] = Lanes::whole(row + at);
        if (k + kAhead < op.k) hwy::Prefetch(row + kAhead * op.n + at);
      } else {
        line[v] = at + Lanes::kWidth <= op.n ? Lanes::whole(row + at) : rest_of(row, at, op.n);
      }
    }
    SNUG_UNROLL for (int r = 0; r < ROWS; ++r) {
      const auto factor = Lanes::set(number(a[r * op.k + k]));
      SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) sums[r][v] = Lanes::fma(factor, line[v], sums[r][v]);
    }
  }
  alignas(64) float values[Lanes::kWidth];
  SNUG_UNROLL for (int r = 0; r < ROWS; ++r) {
    SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) {
      Lanes::store_whole(sums[r][v], values);
      const int64_t start = col + v * Lanes::kWidth;
      add_up(op, r * op.n + start, values, std::min(Lanes::kWidth, op.n - start));
    }
  }
}

template <int ROWS>
void sum_columns_of(const Matmul& op, int64_t begin, int64_t end) {
  constexpr int kVectors = ROWS == 1 ? 8 : ROWS == 2 ? 4 : 2;
  with_types(op.a, op.b, [&](auto* a, auto* b) HWY_ATTR {
    int64_t col = begin;
    for (; col + kVectors * Lanes::kWidth <= end; col += kVectors * Lanes::kWidth)
      sum_block<ROWS, kVectors, true>(op, a, b, col);
    for (; col < end; col += Lanes::kWidth) sum_block<ROWS, 1, false>(op, a, b, col);
  });
}

void sum_rows_of_weights(const Matmul& op, int64_t begin, int64_t end) {
  switch (op.m) {
    case 1: return sum_columns_of<1>(op, begin, end);
    case 2: return sum_columns_of<2>(op, begin, end);
    case 3: return sum_columns_of<3>(op, begin, end);
    default: return sum_columns_of<4>(op, begin, end);
  }
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(dot_columns);
HWY_EXPORT(sum_rows_of_weights);

void require_few_rows(const Matmul& op) {
  if (op.transpose_a || op.m > kFewRows) throw Error("a product by dots has a few rows, not " + std::to_string(op.m));
  require_storage({op.a.dtype, op.b.dtype, op.c.dtype});
}

void dot_product(const Matmul& op) {
  constexpr int64_t kGrain = 64;                     // columns: a part begins on a cache line, whatever the vector
  constexpr int64_t kWorthATeam = int64_t{1} << 15;  // multiplications; below, starting threads takes longer
  require_few_rows(op);
  const int32_t threads = op.m * op.n * op.k < kWorthATeam ? 1 : op.cut.threads;
  for_parts(threads, op.n, kGrain, [&](int32_t, int64_t begin, int64_t end) {
    if (begin == end) return;
    if (op.transpose_b) {
      HWY_DYNAMIC_DISPATCH(dot_columns)(op, begin, end);
    } else {
      HWY_DYNAMIC_DISPATCH(sum_rows_of_weights)(op, begin, end);
    }
  });
}

}  // namespace snug::kernels
#endif  // HWY_ONCE
