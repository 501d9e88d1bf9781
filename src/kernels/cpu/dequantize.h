#pragma once
// Numbers of quantized matrices: what a code stands for times its block's absmax, in fp32, rounded to Scales::values. Equal
// bit by bit to quantize/, which states the formats.

#include <cstdint>

#include "kernels/operands.h"

namespace snug::kernels {

constexpr bool is_quantized(const In& matrix) { return is_4bit(matrix.dtype) || matrix.dtype == DType::i8; }
// The dtype of a matrix's numbers.
constexpr DType values_of(const In& matrix) { return is_quantized(matrix) ? matrix.scales.values : matrix.dtype; }

// out[i] = element `begin` + i of the matrix.
void dequantize(const In& matrix, int64_t begin, int64_t count, float* out);

// Whether the two below can be used: 4-bit codes as bf16, on 16 lanes.
bool has_pairs(const In& matrix);
// words[i] = elements begin + 2 i (low half) and begin + 2 i + 1, bf16 each; `begin` and `count` are multiples of 32, and
// so are blocks.
void dequantize_pairs(const In& matrix, int64_t begin, int64_t count, uint32_t* words);
// The first 32 columns of `rows` rows, `stride` elements each, multiples of 2 and 32: words[r / 2, i] = elements i of row r
// (low half) and of the next.
void dequantize_row_pairs(const In& matrix, int64_t stride, int64_t rows, uint32_t* words);

}  // namespace snug::kernels
