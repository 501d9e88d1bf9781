// The matrix products inside attention: register blocks of kTileRows rows by one or two vectors of columns, in
// HWY_NAMESPACE, read once for each instruction set. Operands are fp32 blocks that fit the caches.

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/highway_lanes.h"

#if defined(SNUG_KERNELS_CPU_ATTENTION_TILE_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SNUG_KERNELS_CPU_ATTENTION_TILE_H
#undef SNUG_KERNELS_CPU_ATTENTION_TILE_H
#else
#define SNUG_KERNELS_CPU_ATTENTION_TILE_H
#endif

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

// 32 vector registers hold 8 x 2 sums, 16 hold 6 x 2.
constexpr int kTileRows = HWY_TARGET == HWY_AVX2 ? 6 : 8;
constexpr int64_t kTileCols = 2 * HighwayLanes::kWidth;

// The operands of c[rows, cols] (+)= a[rows, depth] b[depth, cols]. a is read one number at a time, a(i, k) = data[i * row +
// k * col]; b and c have rows of `step` numbers. b is read to the end of its last vector, c is written exactly.
struct TileA {
  const float* data;
  int64_t row, col;
};
struct TileB {
  const float* data;
  int64_t step;
};
struct TileC {
  float* data;
  int64_t step;
};

// One register block of ROWS rows by VECTORS vectors, the last of which has `last` columns.
template <int ROWS, int VECTORS>
HWY_INLINE void tile(TileA a, TileB b, TileC c, int64_t depth, int64_t last, bool accumulate) {
  using Lanes = HighwayLanes;
  Lanes::Vec sum[ROWS * VECTORS];
  unrolled<ROWS * VECTORS>([&](auto i) SNUG_INLINE { sum[i] = Lanes::set(0.0F); });
  for (int64_t k = 0; k < depth; ++k) {
    Lanes::Vec row[VECTORS];
    unrolled<VECTORS>([&](auto v) SNUG_INLINE { row[v] = Lanes::whole(b.data + k * b.step + v * Lanes::kWidth); });
    unrolled<ROWS>([&](auto i) SNUG_INLINE {
      const auto x = Lanes::set(a.data[i * a.row + k * a.col]);
      unrolled<VECTORS>([&](auto v) SNUG_INLINE {
        constexpr int at = i * VECTORS + v;
        sum[at] = Lanes::fma(x, row[v], sum[at]);
      });
    });
  }
  unrolled<ROWS * VECTORS>([&](auto at) SNUG_INLINE {
    constexpr int i = at / VECTORS, v = at % VECTORS;
    float* to = c.data + i * c.step + v * Lanes::kWidth;
    const int64_t length = v + 1 == VECTORS ? last : Lanes::kWidth;
    if (accumulate) sum[at] = Lanes::add(Lanes::load(to, 0, length), sum[at]);
    Lanes::store(sum[at], to, 0, length);
  });
}

// All rows by one column of register blocks.
template <int VECTORS>
HWY_NOINLINE void tile_column(TileA a, TileB b, TileC c, int64_t rows, int64_t depth, int64_t last, bool accumulate) {
  const auto step = [&](int64_t by) {
    a.data += by * a.row;
    c.data += by * c.step;
    rows -= by;
  };
  for (; rows >= kTileRows; step(kTileRows)) tile<kTileRows, VECTORS>(a, b, c, depth, last, accumulate);
  if (rows >= 4) tile<4, VECTORS>(a, b, c, depth, last, accumulate), step(4);
  if (rows >= 2) tile<2, VECTORS>(a, b, c, depth, last, accumulate), step(2);
  if (rows >= 1) tile<1, VECTORS>(a, b, c, depth, last, accumulate);
}

// c[rows, cols] (+)= a b.
HWY_INLINE void product(TileA a, TileB b, TileC c, int64_t rows, int64_t cols, int64_t depth, bool accumulate) {
  constexpr int64_t kWidth = HighwayLanes::kWidth;
  for (int64_t at = 0; at < cols; at += kTileCols) {
    const TileB from = {b.data + at, b.step};
    const TileC to = {c.data + at, c.step};
    const int64_t left = std::min(cols - at, kTileCols);
    if (left > kWidth) {
      tile_column<2>(a, from, to, rows, depth, left - kWidth, accumulate);
    } else {
      tile_column<1>(a, from, to, rows, depth, left, accumulate);
    }
  }
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
