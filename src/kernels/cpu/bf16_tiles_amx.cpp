// Tiles of products on tile registers (Intel's Software Developer's Manual, vol. 1, ch. 18).

#include "kernels/cpu/bf16_tiles.h"
#include "kernels/cpu/bf16_units.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace snug::kernels::amx {

namespace {

#define SNUG_TILES __attribute__((target("amx-tile,amx-bf16")))

// The operand of ldtilecfg: all eight registers are 16 rows of 64 bytes.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Registers: 0 to 3 are c (top left, top right, bottom left, bottom right), 4 and 5 rows of a, 6 and 7 columns of b.
SNUG_TILES inline void multiply_a(const uint16_t* a, int64_t row_bytes, int64_t rows_16) {
  _tile_loadd(4, a, row_bytes);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_loadd(5, a + rows_16, row_bytes);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

SNUG_TILES inline void load_b(const uint16_t* b) {
  constexpr int64_t kRowBytes = 2 * kTile * static_cast<int64_t>(sizeof(uint16_t));
  _tile_loadd(6, b, kRowBytes);
  _tile_loadd(7, b + kTile, kRowBytes);
}

template <bool A_LOW, bool B_LOW>
SNUG_TILES void multiply(const TileFactors& f, float* c, int64_t c_stride, bool accumulate) {
  const int64_t c_bytes = c_stride * static_cast<int64_t>(sizeof(float));
  float* const below = c + 16 * c_stride;
  if (accumulate) {
    _tile_loadd(0, c, c_bytes);
    _tile_loadd(1, c + 16, c_bytes);
    _tile_loadd(2, below, c_bytes);
    _tile_loadd(3, below + 16, c_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const int64_t a_bytes = f.a_stride * static_cast<int64_t>(sizeof(uint16_t));
  const uint16_t* a = f.a;
  const uint16_t* b = f.b;
  for (int64_t k = 0; k < f.k; k += kTile, a += kTile, b += kTile * kTile) {
    load_b(b);
    multiply_a(a, a_bytes, 16 * f.a_stride);
    if constexpr (A_LOW) multiply_a(a + f.a_low, a_bytes, 16 * f.a_stride);
    if constexpr (B_LOW) {
      load_b(b + f.b_low);
      multiply_a(a, a_bytes, 16 * f.a_stride);
    }
  }
  _tile_stored(0, c, c_bytes);
  _tile_stored(1, c + 16, c_bytes);
  _tile_stored(2, below, c_bytes);
  _tile_stored(3, below + 16, c_bytes);
}

SNUG_TILES void load_shapes(const TileShapes& shapes) {
  asm volatile("" : : "m"(shapes));  // the intrinsic tells the compiler of eight bytes only
  _tile_loadconfig(&shapes);
}

}  // namespace

SNUG_TILES void configure() { load_shapes(TileShapes()); }
SNUG_TILES void release() { _tile_release(); }

void multiply_tile(const TileFactors& f, float* c, int64_t c_stride, bool accumulate) {
  if (f.a_low != 0 && f.b_low != 0) return multiply<true, true>(f, c, c_stride, accumulate);
  if (f.a_low != 0) return multiply<true, false>(f, c, c_stride, accumulate);
  if (f.b_low != 0) return multiply<false, true>(f, c, c_stride, accumulate);
  multiply<false, false>(f, c, c_stride, accumulate);
}

}  // namespace snug::kernels::amx

#endif
