#pragma once
// c[32, 32] (+)= a[32, k] b[k, 32] in bf16: products are exact in fp32 and are summed in fp32. Needs a CPU that has means to
// (base/cpu_features.h).

#include <cstdint>

namespace snug::kernels {

constexpr int64_t kTile = 32;  // rows and columns of c, and the step of the summed dimension

// Numbers are in one piece, bf16, or in two: high = bf16(x), low = bf16(x - high), which together keep 16 bits
// of mantissa, more than f16 has. Products of pieces are summed but for low times low, which is below both.
struct TileFactors {
  const uint16_t* a = nullptr;  // [32, k], `a_stride` elements a row
  int64_t a_stride = 0;
  int64_t a_low = 0;            // elements from the high to the low piece; 0: one piece
  const uint16_t* b = nullptr;  // [k / 2, 32, 2]: pairs of the summed dimension side by side
  int64_t b_low = 0;
  int64_t k = 0;           // a multiple of 32
  bool left_half = false;  // the first 16 columns alone are wanted: what the others become is not said
};

// Tile registers of the calling thread, where there are any, are set up for as long as this lives.
class TileRegisters {
 public:
  TileRegisters();
  ~TileRegisters();
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;
};

// `c`: fp32, `c_stride` elements a row.
void multiply_tile(const TileFactors& factors, float* c, int64_t c_stride, bool accumulate);

// For `rows` rows of `a`, a multiple of 32, and of c; factors.a is set here.
inline void multiply_rows(TileFactors factors, const uint16_t* a, int64_t rows, float* c, int64_t c_stride,
                          bool accumulate) {
  for (int64_t r = 0; r < rows; r += kTile) {
    factors.a = a + r * factors.a_stride;
    multiply_tile(factors, c + r * c_stride, c_stride, accumulate);
  }
}

}  // namespace snug::kernels
