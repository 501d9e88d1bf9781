// Tiles of products by dot products of bf16 pairs in vector registers (AVX512-BF16: VDPBF16PS).

#include <cstring>

#include "kernels/cpu/bf16_tiles.h"
#include "kernels/cpu/bf16_units.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace snug::kernels::avx512 {

namespace {

#define SNUG_DOTS __attribute__((target("avx512f,avx512bf16")))

// Of c at a time: with 16 sums in flight both multipliers are busy, and a pair of a and b is loaded for 8 products.
constexpr int64_t kRows = 8;
constexpr int64_t kLanes = 16;

// Two vectors of pairs of b.
struct Pairs {
  __m512bh left, right;
};

SNUG_DOTS inline Pairs load_b(const uint16_t* b) {
  return {reinterpret_cast<__m512bh>(_mm512_loadu_si512(b)), reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + kTile))};
}

// A pair of a row of a, in every lane.
SNUG_DOTS inline __m512bh load_a(const uint16_t* a) {
  int32_t pair = 0;
  std::memcpy(&pair, a, sizeof pair);
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
}

template <bool A_LOW, bool B_LOW>
SNUG_DOTS void multiply_8_rows(const TileFactors& f, const uint16_t* a, float* c, int64_t c_stride, bool accumulate) {
  __m512 sums[kRows][2];
#pragma GCC unroll 8
  for (int64_t r = 0; r < kRows; ++r) {
    sums[r][0] = accumulate ? _mm512_loadu_ps(c + r * c_stride) : _mm512_setzero_ps();
    sums[r][1] = accumulate ? _mm512_loadu_ps(c + r * c_stride + kLanes) : _mm512_setzero_ps();
  }
  for (int64_t k = 0; k < f.k; k += 2) {
    const Pairs b = load_b(f.b + k * kTile);
    const Pairs b_low = load_b(f.b + k * kTile + (B_LOW ? f.b_low : 0));
#pragma GCC unroll 8
    for (int64_t r = 0; r < kRows; ++r) {
      const uint16_t* const pair = a + r * f.a_stride + k;
      const __m512bh high = load_a(pair);
      sums[r][0] = _mm512_dpbf16_ps(sums[r][0], high, b.left);
      sums[r][1] = _mm512_dpbf16_ps(sums[r][1], high, b.right);
      if constexpr (A_LOW) {
        const __m512bh low = load_a(pair + f.a_low);
        sums[r][0] = _mm512_dpbf16_ps(sums[r][0], low, b.left);
        sums[r][1] = _mm512_dpbf16_ps(sums[r][1], low, b.right);
      }
      if constexpr (B_LOW) {
        sums[r][0] = _mm512_dpbf16_ps(sums[r][0], high, b_low.left);
        sums[r][1] = _mm512_dpbf16_ps(sums[r][1], high, b_low.right);
      }
    }
  }
#pragma GCC unroll 8
  for (int64_t r = 0; r < kRows; ++r) {
    _mm512_storeu_ps(c + r * c_stride, sums[r][0]);
    _mm512_storeu_ps(c + r * c_stride + kLanes, sums[r][1]);
  }
}

template <bool A_LOW, bool B_LOW>
void multiply(const TileFactors& f, float* c, int64_t c_stride, bool accumulate) {
  for (int64_t r = 0; r < kTile; r += kRows)
    multiply_8_rows<A_LOW, B_LOW>(f, f.a + r * f.a_stride, c + r * c_stride, c_stride, accumulate);
}

}  // namespace

void multiply_tile(const TileFactors& f, float* c, int64_t c_stride, bool accumulate) {
  if (f.a_low != 0 && f.b_low != 0) return multiply<true, true>(f, c, c_stride, accumulate);
  if (f.a_low != 0) return multiply<true, false>(f, c, c_stride, accumulate);
  if (f.b_low != 0) return multiply<false, true>(f, c, c_stride, accumulate);
  multiply<false, false>(f, c, c_stride, accumulate);
}

}  // namespace snug::kernels::avx512

#endif
