#include "kernels/cpu/thin_product.h"

#include <algorithm>
#include <cstdint>

#include "base/checked.h"
#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/tiles.h"

#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

using Lanes = HighwayLanes;

// A vector of a row of n numbers; WHOLE: it does not end within. (Sums stay in registers only where no branch is near.)
template <bool WHOLE, class T>
HWY_INLINE Lanes::Vec load(const T* row, int64_t i, int64_t n) {
  if constexpr (WHOLE) return Lanes::whole(row + i);
  if (i + Lanes::kWidth <= n) return Lanes::whole(row + i);
  return rest_of(row, i, n);
}

// ---- c[m, n] (+)= scale * a[m, k] b[k, n]

// ROWS x VECTORS of c at column `col`.
template <int ROWS, int VECTORS, bool WHOLE, class C>
HWY_INLINE void update_block(const Matmul& op, const float* a, const float* b, C* c, int64_t col) {
  Lanes::Vec sums[ROWS][VECTORS];
  SNUG_UNROLL for (int r = 0; r < ROWS; ++r) SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) sums[r][v] = Lanes::set(0.0F);
  for (int64_t k = 0; k < op.k; ++k) {
    Lanes::Vec line[VECTORS];
    SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) line[v] = load<WHOLE>(b + k * op.n, col + v * Lanes::kWidth, op.n);
    SNUG_UNROLL for (int r = 0; r < ROWS; ++r) {
      const auto factor = Lanes::set(a[r * op.k + k]);
      SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) sums[r][v] = Lanes::fma(factor, line[v], sums[r][v]);
    }
  }
  const auto scale = Lanes::set(op.scale);
  SNUG_UNROLL for (int r = 0; r < ROWS; ++r) {
    SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) {
      C* const row = c + r * op.n;
      const int64_t at = col + v * Lanes::kWidth;
      auto value = Lanes::mul(sums[r][v], scale);
      if (op.accumulate) value = Lanes::add(value, load<WHOLE>(row, at, op.n));
      if constexpr (WHOLE) {
        Lanes::store_whole(value, row + at);
      } else {
        Lanes::store(value, row, at, op.n);
      }
    }
  }
}

template <int ROWS, class C>
HWY_INLINE void update_rows_of(const Matmul& op, const float* a, const float* b, C* c) {
  constexpr int kVectors = HWY_TARGET == HWY_AVX2 ? 3 : 4;  // with ROWS of 4 as many sums as there are registers for
  int64_t col = 0;
  for (; col + kVectors * Lanes::kWidth <= op.n; col += kVectors * Lanes::kWidth)
    update_block<ROWS, kVectors, true>(op, a, b, c, col);
  for (; col < op.n; col += Lanes::kWidth) update_block<ROWS, 1, false>(op, a, b, c, col);
}

// `b`: [k, n].
void update_rows(const Matmul& op, const float* b, int64_t begin, int64_t end) {
  constexpr int kRows = 4;
  const float* const a = as_float(op.a);
  with_type(op.c, [&](auto* c) HWY_ATTR {
    int64_t row = begin;
    for (; row + kRows <= end; row += kRows) update_rows_of<kRows>(op, a + row * op.k, b, c + row * op.n);
    for (; row < end; ++row) update_rows_of<1>(op, a + row * op.k, b, c + row * op.n);
  });
}

// ---- c (+)= scale * the sum over tokens of thin[token, r] wide[token, col]

// The factors of a sum and where its result goes: element [r, col] lies at c[r * thin_step + col * wide_step].
template <class Wide>
struct ThinSum {
  const float* thin;  // [tokens, thin_cols]
  const Wide* wide;   // [tokens, wide_cols]
  int64_t tokens, thin_cols, wide_cols;
  float* c;
  int64_t thin_step, wide_step;
  float scale;
  bool accumulate;
};

// A vector of sums to its place: out of line, for it runs once where the sums took all tokens.
template <class Wide>
HWY_NOINLINE void put_sums(const ThinSum<Wide>& s, int64_t row, int64_t start, Lanes::Vec sums) {
  alignas(64) float values[Lanes::kWidth];
  Lanes::store_whole(sums, values);
  for (int64_t lane = 0; lane < Lanes::kWidth && start + lane < s.wide_cols; ++lane) {
    float& to = s.c[row * s.thin_step + (start + lane) * s.wide_step];
    to = (s.accumulate ? to : 0.0F) + s.scale * values[lane];
  }
}

// THIN rows from `first` by VECTORS from `col`, over all tokens.
template <int THIN, int VECTORS, bool WHOLE, class Wide>
HWY_INLINE void sum_block(const ThinSum<Wide>& s, int64_t first, int64_t col) {
  constexpr int64_t kAhead = 24;  // rows of `wide` are far apart: fetched by hand
  Lanes::Vec sums[THIN][VECTORS];
  SNUG_UNROLL for (int r = 0; r < THIN; ++r) SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) sums[r][v] = Lanes::set(0.0F);
  for (int64_t token = 0; token < s.tokens; ++token) {
    const Wide* const row = s.wide + token * s.wide_cols;
    const float* const factors = s.thin + token * s.thin_cols + first;
    Lanes::Vec line[VECTORS];
    SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) {
      line[v] = load<WHOLE>(row, col + v * Lanes::kWidth, s.wide_cols);
      if (token + kAhead < s.tokens) hwy::Prefetch(row + kAhead * s.wide_cols + col + v * Lanes::kWidth);
    }
    SNUG_UNROLL for (int r = 0; r < THIN; ++r) {
      const auto factor = Lanes::set(factors[r]);
      SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) sums[r][v] = Lanes::fma(factor, line[v], sums[r][v]);
    }
  }
  SNUG_UNROLL for (int r = 0; r < THIN; ++r) {
    SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) put_sums(s, first + r, col + v * Lanes::kWidth, sums[r][v]);
  }
}

template <int VECTORS, bool WHOLE, class Wide>
HWY_INLINE void sum_columns_of(const ThinSum<Wide>& s, int64_t col) {
  int64_t r = 0;
  for (; r + 8 <= s.thin_cols; r += 8) sum_block<8, VECTORS, WHOLE>(s, r, col);
  for (; r + 2 <= s.thin_cols; r += 2) sum_block<2, VECTORS, WHOLE>(s, r, col);
  for (; r < s.thin_cols; ++r) sum_block<1, VECTORS, WHOLE>(s, r, col);
}

// Columns [begin, end) of the wide factor; begin is a multiple of the vector.
void sum_columns(const Matmul& op, int64_t begin, int64_t end) {
  const bool a_is_thin = op.m <= op.n;
  with_type(a_is_thin ? op.b : op.a, [&](auto* wide) HWY_ATTR {
    const ThinSum<std::remove_cv_t<std::remove_pointer_t<decltype(wide)>>> sum{.thin = as_float(a_is_thin ? op.a : op.b),
                                                                               .wide = wide,
                                                                               .tokens = op.k,
                                                                               .thin_cols = a_is_thin ? op.m : op.n,
                                                                               .wide_cols = a_is_thin ? op.n : op.m,
                                                                               .c = as_float(op.c),
                                                                               .thin_step = a_is_thin ? op.n : 1,
                                                                               .wide_step = a_is_thin ? 1 : op.n,
                                                                               .scale = op.scale,
                                                                               .accumulate = op.accumulate};
    constexpr int kVectors = 3;
    int64_t col = begin;
    for (; col + kVectors * Lanes::kWidth <= end; col += kVectors * Lanes::kWidth) sum_columns_of<kVectors, true>(sum, col);
    for (; col < end; col += Lanes::kWidth) sum_columns_of<1, false>(sum, col);
  });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(update_rows);
HWY_EXPORT(sum_columns);

namespace {

constexpr int64_t kBlockGrain = 48;  // columns: a part begins on a cache line and is made of whole blocks

}  // namespace

int64_t thin_workspace_bytes(const Matmul& op) {
  return !op.transpose_a && op.transpose_b ? align_up(op.k * op.n * static_cast<int64_t>(sizeof(float)), 64) : 0;
}

void thin_product(const Matmul& op) {
  require_workspace(op.workspace, thin_workspace_bytes(op), "a thin product");
  if (op.transpose_a) {
    for_parts(op.cut.threads, std::max(op.m, op.n), kBlockGrain, [&](int32_t, int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(sum_columns)(op, begin, end);
    });
    return;
  }
  const float* b = as_float(op.b);
  if (op.transpose_b) {
    auto* const turned = static_cast<float*>(op.workspace.data);
    for_parts(op.cut.threads, op.n, 16, [&](int32_t, int64_t begin, int64_t end) {
      transpose_tile({b + begin * op.k}, op.k, turned + begin, op.n, end - begin, op.k);
    });
    b = turned;
  }
  for_parts(op.cut.threads, op.m, 4, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(update_rows)(op, b, begin, end);
  });
}

}  // namespace snug::kernels
#endif  // HWY_ONCE
