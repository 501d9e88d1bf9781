#include "kernels/cpu/dot_product.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

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

// Blocks take one row of a or four: of fewer than four the last is read again and what comes of it not stored, for the time
// goes into reading b. Plain code, which has few registers, takes one.
template <int ROWS>
int64_t row_of(const Matmul& op, int64_t first, int r) {
  return ROWS == 1 ? first : std::min<int64_t>(first + r, op.m - 1);
}

// block(std::integral_constant<int, ROWS>, first row) for all rows of a.
template <class Block>
HWY_INLINE void for_rows(const Matmul& op, const Block& block) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  for (int64_t row = 0; row < op.m; ++row) block(std::integral_constant<int, 1>(), row);
#else
  if (op.m == 1) return block(std::integral_constant<int, 1>(), 0);
  block(std::integral_constant<int, static_cast<int>(kFewRows)>(), 0);
#endif
}

// ---- b [n, k]: rows of weights, each a dot product with every row of a

constexpr int kDots = 4;  // of each row at a time

// ROWS of a from `row` on by kDots rows of b from `col` on; where these end, the last is read again.
template <int ROWS, class A, class B>
HWY_INLINE void dot_block(const Matmul& op, const A* a, const B* b, int64_t row, int64_t col, int64_t end) {
  constexpr int64_t kWidth = Lanes::kWidth;
  const A* lines[ROWS];
  SNUG_UNROLL for (int r = 0; r < ROWS; ++r) lines[r] = a + row_of<ROWS>(op, row, r) * op.k;
  const B* rows[kDots];
  SNUG_UNROLL for (int j = 0; j < kDots; ++j) rows[j] = b + std::min(col + j, end - 1) * op.k;
  Lanes::Vec sums[ROWS][kDots];
  SNUG_UNROLL for (int r = 0; r < ROWS; ++r) SNUG_UNROLL for (int j = 0; j < kDots; ++j) sums[r][j] = Lanes::set(0.0F);
  int64_t i = 0;
  for (; i + kWidth <= op.k; i += kWidth) {
    Lanes::Vec x[ROWS];
    SNUG_UNROLL for (int r = 0; r < ROWS; ++r) x[r] = Lanes::whole(lines[r] + i);
    SNUG_UNROLL for (int j = 0; j < kDots; ++j) {
      const auto w = Lanes::whole(rows[j] + i);
      SNUG_UNROLL for (int r = 0; r < ROWS; ++r) sums[r][j] = Lanes::fma(x[r], w, sums[r][j]);
    }
  }
  if (i < op.k) {
    SNUG_UNROLL for (int j = 0; j < kDots; ++j) {
      const auto w = rest_of(rows[j], i, op.k);
      SNUG_UNROLL for (int r = 0; r < ROWS; ++r) sums[r][j] = Lanes::fma(rest_of(lines[r], i, op.k), w, sums[r][j]);
    }
  }
  SNUG_UNROLL for (int r = 0; r < ROWS; ++r) {
    if (row + r >= op.m) break;
    float values[kDots];
    SNUG_UNROLL for (int j = 0; j < kDots; ++j) values[j] = Lanes::sum(sums[r][j]);
    add_up(op, (row + r) * op.n + col, values, std::min<int64_t>(kDots, end - col));
  }
}

void dot_columns(const Matmul& op, int64_t begin, int64_t end) {
  with_types(op.a, op.b, [&](auto* a, auto* b) HWY_ATTR {
    for_rows(op, [&](auto rows, int64_t row) HWY_ATTR {
      for (int64_t col = begin; col < end; col += kDots) dot_block<decltype(rows)::value>(op, a, b, row, col, end);
    });
  });
}

// ---- b [k, n]: sums of its rows, each times a number of a

// ROWS of c from `row` on by VECTORS from `col` on; WHOLE: no vector ends within. Rows of b are far apart: fetched by hand.
template <int ROWS, int VECTORS, bool WHOLE, class A, class B>
HWY_INLINE void sum_block(const Matmul& op, const A* a, const B* b, int64_t row, int64_t col) {
  constexpr int64_t kAhead = 16;
  const A* lines[ROWS];
  SNUG_UNROLL for (int r = 0; r < ROWS; ++r) lines[r] = a + row_of<ROWS>(op, row, r) * op.k;
  Lanes::Vec sums[ROWS][VECTORS];
  SNUG_UNROLL for (int r = 0; r < ROWS; ++r) SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) sums[r][v] = Lanes::set(0.0F);
  for (int64_t k = 0; k < op.k; ++k) {
    const B* const weights = b + k * op.n;
    Lanes::Vec line[VECTORS];
    SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) {
      const int64_t at = col + v * Lanes::kWidth;
      if constexpr (WHOLE) {
        line[v] = Lanes::whole(weights + at);
        if (k + kAhead < op.k) hwy::Prefetch(weights + kAhead * op.n + at);
      } else {
        line[v] = at + Lanes::kWidth <= op.n ? Lanes::whole(weights + at) : rest_of(weights, at, op.n);
      }
    }
    SNUG_UNROLL for (int r = 0; r < ROWS; ++r) {
      const auto factor = Lanes::set(number(lines[r][k]));
      SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) sums[r][v] = Lanes::fma(factor, line[v], sums[r][v]);
    }
  }
  alignas(64) float values[Lanes::kWidth];
  SNUG_UNROLL for (int r = 0; r < ROWS; ++r) {
    if (row + r >= op.m) break;
    SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) {
      Lanes::store_whole(sums[r][v], values);
      const int64_t start = col + v * Lanes::kWidth;
      add_up(op, (row + r) * op.n + start, values, std::min(Lanes::kWidth, op.n - start));
    }
  }
}

void sum_rows_of_weights(const Matmul& op, int64_t begin, int64_t end) {
  with_types(op.a, op.b, [&](auto* a, auto* b) HWY_ATTR {
    for_rows(op, [&](auto rows, int64_t row) HWY_ATTR {
      constexpr int kRows = decltype(rows)::value;
      constexpr int kVectors = kRows == 1 ? 8 : 2;
      int64_t col = begin;
      for (; col + kVectors * Lanes::kWidth <= end; col += kVectors * Lanes::kWidth)
        sum_block<kRows, kVectors, true>(op, a, b, row, col);
      for (; col < end; col += Lanes::kWidth) sum_block<kRows, 1, false>(op, a, b, row, col);
    });
  });
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
  constexpr int64_t kWorthATeam = int64_t{1} << 15;  // multiplications; below, starting threads takes longer
  require_few_rows(op);
  const int32_t threads = op.m * op.n * op.k < kWorthATeam ? 1 : op.cut.threads;
  for_parts(threads, op.n, kLineGrain, [&](int32_t, int64_t begin, int64_t end) {
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
