#pragma once
// bfloat16 <-> float32, rounding to nearest even. One definition for the loader, the tests and scalar kernels.

#include <bit>
#include <cstdint>

namespace snug {

inline float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// NaN stays NaN (its quiet bit is set); overflow rounds to infinity, as IEEE 754 asks.
inline uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace snug
