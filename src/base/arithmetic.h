#pragma once
// How products of matrices are computed.

#include <cstdint>

namespace snug {

enum class Arithmetic : uint8_t {
  fp32,         // by oneDNN, or by our own panels where a CPU has no AVX-512
  fp32_thin,    // by our own loops, for products with one short dimension (a LoRA rank), which move more than they multiply
  fp32_dots,    // by our own loops, for a few rows (one generated token): the weights are read once, as they are stored
  bf16,         // exact products of bf16, summed in fp32; fp32 beside bf16 is rounded to it
  bf16_pieces,  // likewise, f16 and fp32 beside it each taken as two bf16 pieces, which together are no less exact than f16
};

inline bool in_bf16(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::bf16 || arithmetic == Arithmetic::bf16_pieces;
}

}  // namespace snug
