// Tiles of products by dot products of bf16 pairs in vector registers (AVX512-BF16: VDPBF16PS).

#include <cstring>

#include "kernels/cpu/bf16_tiles.h"
#include "kernels/cpu/bf16_units.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace snug::kernels::avx512 {

namespace {

#define SNUG_DOTS __attribute__((target("avx512f,avx512bf16")))

// Of c at a time: with 16 sums in flight both multipliers are busy. Of 32 columns a pair of a and b is loaded for 8
// products.
constexpr int kSums = 16;
constexpr int64_t kLanes = 16;

SNUG_DOTS inline __m512bh load_b(const uint16_t* b) { return reinterpret_cast<__m512bh>(_mm512_loadu_si512(b)); }

// A pair of a row of a, in every lane.
SNUG_DOTS inline __m512bh load_a(const uint16_t* a) {
  int32_t pair = 0;
  std::memcpy(&pair, a, sizeof pair);
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
}

// sums[r][v] += a pair of each row by VECTORS vectors of pairs of b.
template <int ROWS, int VECTORS>
SNUG_DOTS inline void add_products(__m512 (&sums)[ROWS][VECTORS], const uint16_t* a, int64_t a_stride, const uint16_t* b) {
  __m512bh columns[VECTORS];
#pragma GCC unroll 2
  for (int v = 0; v < VECTORS; ++v) columns[v] = load_b(b + v * kTile);
#pragma GCC unroll 16
  for (int r = 0; r < ROWS; ++r) {
    const __m512bh pair = load_a(a + r * a_stride);
#pragma GCC unroll 2
    for (int v = 0; v < VECTORS; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], pair, columns[v]);
  }
}

template <bool A_LOW, bool B_LOW, int VECTORS>
SNUG_DOTS void multiply_some_rows(const TileFactors& f, const uint16_t* a, float* c, int64_t c_stride, bool accumulate) {
  constexpr int kRows = kSums / VECTORS;
  __m512 sums[kRows][VECTORS];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < VECTORS; ++v)
      sums[r][v] = accumulate ? _mm512_loadu_ps(c + r * c_stride + v * kLanes) : _mm512_setzero_ps();
  for (int64_t k = 0; k < f.k; k += 2) {
    const uint16_t* const b = f.b + k * kTile;
    add_products(sums, a + k, f.a_stride, b);
    if constexpr (A_LOW) add_products(sums, a + k + f.a_low, f.a_stride, b);
    if constexpr (B_LOW) add_products(sums, a + k, f.a_stride, b + f.b_low);
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < VECTORS; ++v) _mm512_storeu_ps(c + r * c_stride + v * kLanes, sums[r][v]);
}

template <bool A_LOW, bool B_LOW, int VECTORS = 2>
void multiply(const TileFactors& f, float* c, int64_t c_stride, bool accumulate) {
  for (int64_t r = 0; r < kTile; r += kSums / VECTORS)
    multiply_some_rows<A_LOW, B_LOW, VECTORS>(f, f.a + r * f.a_stride, c + r * c_stride, c_stride, accumulate);
}

}  // namespace

void multiply_tile(const TileFactors& f, float* c, int64_t c_stride, bool accumulate) {
  if (f.a_low != 0 && f.b_low != 0) return multiply<true, true>(f, c, c_stride, accumulate);
  if (f.a_low != 0) return multiply<true, false>(f, c, c_stride, accumulate);
  if (f.b_low != 0) return multiply<false, true>(f, c, c_stride, accumulate);
  if (f.left_half) return multiply<false, false, 1>(f, c, c_stride, accumulate);
  multiply<false, false>(f, c, c_stride, accumulate);
}

}  // namespace snug::kernels::avx512

#endif
