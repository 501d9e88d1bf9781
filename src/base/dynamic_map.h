#pragma once
// bitsandbytes' 8-bit dynamic maps (functional.py:create_dynamic_map): 256 floats in [-1, 1], dense where numbers are small,
// and the code whose float is nearest. Floats are those that PyTorch makes on CPUs with AVX2 (its linspace uses fused
// multiply-adds there), bit for bit. Ties are decided as the CUDA quantizer's binary search does (kernels.cu:dQuantize,
// quantize_2D): a value halfway between two codes gets the even one. The CPU quantizer (cpu_ops.cpp) is not followed: it
// rounds to one of 65,536 steps first and so misses the nearest code near the midpoints. Knows nothing of blocks and scales.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>

namespace snug {

class DynamicMap {
 public:
  // For values of both signs: -0.99296875 … 0 (code 127) … 1; -1 is not in it.
  static const DynamicMap& of_signed();
  // For values >= 0, such as second moments: 0 (code 0) … 1.
  static const DynamicMap& of_unsigned();

  // The 256 floats, ascending; a code is an index.
  std::span<const float, 256> values() const { return values_; }
  float operator[](uint8_t code) const { return values_[code]; }

  // A value's nearest code is the number of these below it (strictly); the last is infinite. For vectorised encoders.
  std::span<const float, 256> thresholds() const { return thresholds_; }

  // The code nearest to `value`, which may lie outside [-1, 1] but must not be NaN.
  uint8_t nearest(float value) const {
    const auto bits = std::bit_cast<uint32_t>(value);
    const int magnitude = std::clamp(static_cast<int>((bits & 0x7fffffffU) >> 16), kFirst, kLast) - kFirst;
    const uint8_t least = least_[static_cast<size_t>(magnitude) + (bits >> 31 != 0 ? size_t{kBuckets} : 0)];
    return static_cast<uint8_t>(least + (value > thresholds_[least] ? 1 : 0));
  }

 private:
  explicit DynamicMap(bool is_signed);

  // Values that share sign, exponent and 7 bits of mantissa form a bucket: 128 to an octave from 2^-23 on, so fine that at
  // most one threshold falls into each.
  static constexpr int kFirst = (127 - 23) << 7, kLast = 127 << 7, kBuckets = kLast - kFirst + 1;

  std::array<float, 256> values_;
  std::array<float, 256> thresholds_;
  std::array<uint8_t, 2 * kBuckets> least_;  // the code of a bucket's least value; negative buckets follow the others
};

}  // namespace snug
