#pragma once
// Copies between a matrix of f32, bf16, f16 or quantized numbers and dense fp32 blocks, one thread's share at a time.
// `pack.cpp` shares them out.

#include <cstdint>

#include "kernels/cpu/dequantize.h"
#include "kernels/operands.h"

namespace snug::kernels {

// dst[r, c] = src[r, c]. Strides are in elements.
void copy_tile(const In& src, int64_t src_stride, float* dst, int64_t dst_stride, int64_t rows, int64_t cols);
// dst[c, r] = src[r, c].
void transpose_tile(const In& src, int64_t src_stride, float* dst, int64_t dst_stride, int64_t rows, int64_t cols);
// dst[i] (+)= src[i], rounded to dst's type.
void store_row(const float* src, const Out& dst, int64_t elements, bool accumulate);

// The element `index` elements on.
inline In at(const In& matrix, int64_t index) {
  if (is_quantized(matrix)) return {matrix.data, matrix.dtype, matrix.first + index, matrix.scales};
  return {static_cast<const char*>(matrix.data) + index * size_of(matrix.dtype), matrix.dtype};
}
inline Out at(const Out& matrix, int64_t index) {
  return {static_cast<char*>(matrix.data) + index * size_of(matrix.dtype), matrix.dtype};
}

}  // namespace snug::kernels
