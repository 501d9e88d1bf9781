#pragma once
// How products of matrices are computed.

#include <cstdint>

namespace snug {

// bf16_pieces: on bf16 tile registers, summed in fp32; an fp32 operand is taken as two bf16 numbers (16 bits of mantissa).
// For products with a bf16 operand; those of two fp32 operands are fp32 everywhere.
enum class Arithmetic : uint8_t { fp32, bf16_pieces };

}  // namespace snug
