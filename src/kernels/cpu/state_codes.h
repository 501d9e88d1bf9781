#pragma once
// Optimizer states that are not fp32: decoded to and encoded from a block of fp32 numbers on the stack. bf16 is rounded
// stochastically, so that changes smaller than half a step are kept on average; u8 are bitsandbytes' codes of dynamic maps.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/bfloat16.h"
#include "base/dynamic_map.h"
#include "base/philox.h"
#include "kernels/cpu/storage.h"
#include "kernels/ops/optimizers.h"

namespace snug::kernels {

// out[i] = element begin + i of the state. `begin` starts a block.
inline void decode(const CodedState& state, const DynamicMap& map, int64_t begin, int64_t n, float* out) {
  if (state.dtype == DType::bf16) {
    const Bf16* const bits = as_bf16(state) + begin;
    for (int64_t i = 0; i < n; ++i) out[i] = bf16_to_f32(bits[i].bits);
    return;
  }
  const uint8_t* const codes = static_cast<const uint8_t*>(state.data) + begin;
  const float absmax = state.absmax[begin / kStateBlock];
  for (int64_t i = 0; i < n; ++i) out[i] = map[codes[i]] * absmax;
}

// Stores the block's largest magnitude; shares[i] = values[i] / it, or 0 in a block of zeros.
inline void scale_block(const CodedState& state, int64_t begin, int64_t n, const float* values, float* shares) {
  float largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(values[i]));
  state.absmax[begin / kStateBlock] = largest;
  const float divisor = largest > 0 ? largest : 1.0F;
  for (int64_t i = 0; i < n; ++i) shares[i] = values[i] / divisor;
}

// Codes of a state with signs. A value never changes its sign: where the nearest code would, its neighbour is taken.
inline void encode_signed(const CodedState& state, int64_t begin, int64_t n, const float* values) {
  const DynamicMap& map = DynamicMap::of_signed();
  uint8_t* const codes = static_cast<uint8_t*>(state.data) + begin;
  alignas(64) float shares[kStateBlock];
  scale_block(state, begin, n, values, shares);
  for (int64_t i = 0; i < n; ++i) {
    const uint8_t code = map.nearest(shares[i]);
    const bool turned = std::signbit(map[code]) != std::signbit(values[i]);
    codes[i] = static_cast<uint8_t>(turned ? code + (values[i] > 0 ? 1 : -1) : code);
  }
}

// Codes of a state that is never negative.
inline void encode_unsigned(const CodedState& state, int64_t begin, int64_t n, const float* values) {
  const DynamicMap& map = DynamicMap::of_unsigned();
  uint8_t* const codes = static_cast<uint8_t*>(state.data) + begin;
  alignas(64) float shares[kStateBlock];
  scale_block(state, begin, n, values, shares);
  for (int64_t i = 0; i < n; ++i) codes[i] = map.nearest(shares[i]);
}

// Rounds to bf16, up or down with the chances that make the mean exact. The noise depends on the element and the step, not
// on threads.
class StochasticRounding {
 public:
  // The noise counts elements from `first_element`, so that parts of a buffer get what they would get in the whole.
  StochasticRounding(uint64_t seed, uint64_t stream, uint64_t step, int64_t first_element)
      : random_{seed, step << 16 | stream}, first_element_(first_element) {}

  // Elements begin … begin + n of two states; begin is a multiple of 4.
  void round(Bf16* first, Bf16* second, const float* first_values, const float* second_values, int64_t begin,
             int64_t n) const {
    for (int64_t i = 0; i < n; i += 4) {
      const std::array<uint32_t, 4> noise = random_.words(static_cast<uint64_t>(first_element_ + begin + i) / 4);
      for (int64_t j = i; j < std::min(i + 4, n); ++j) {
        const uint32_t word = noise[static_cast<size_t>(j - i)];
        first[begin + j].bits = rounded(first_values[j], word & 0xffffU);
        second[begin + j].bits = rounded(second_values[j], word >> 16);
      }
    }
  }

 private:
  static uint16_t rounded(float value, uint32_t noise) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const bool finite = (bits & 0x7f800000U) != 0x7f800000U;
    return finite ? static_cast<uint16_t>((bits + noise) >> 16) : f32_to_bf16(value);
  }

  Philox random_;
  int64_t first_element_;
};

// run(i, count) for every run of finite gradients, other(i) for every element between them.
template <class Run, class Other>
void for_finite_runs(const float* gradient, int64_t n, const Run& run, const Other& other) {
  for (int64_t i = 0, next = 0; i < n; i = next) {
    next = i + 1;
    if (!std::isfinite(gradient[i])) {
      other(i);
      continue;
    }
    while (next < n && std::isfinite(gradient[next])) ++next;
    run(i, next - i);
  }
}

}  // namespace snug::kernels
