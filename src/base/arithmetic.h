#pragma once
// How products of matrices are computed.

#include <cstdint>

namespace snug {

enum class Arithmetic : uint8_t {
  fp32,         // by oneDNN
  fp32_thin,    // by our own loops, for products with one short dimension (a LoRA rank), which move more than they multiply
  fp32_dots,    // by our own loops, for a few rows (one generated token): the weights are read once, as they are stored
  bf16_pieces,  // on bf16 tile registers, summed in fp32; one operand is bf16 or f16, and what is not bf16 is taken as two
};

}  // namespace snug
