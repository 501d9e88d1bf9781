#pragma once
// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11).
// A value depends only on (seed, stream, index), so recompute, resume and the number of threads do not change it.

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace snug {

struct Philox {
  uint64_t seed = 0;
  uint64_t stream = 0;  // what is drawn: a tensor, an op, an epoch

  // Four independent uniform 32-bit words for `index`.
  std::array<uint32_t, 4> words(uint64_t index) const {
    std::array<uint32_t, 4> c = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                                 static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
    auto k0 = static_cast<uint32_t>(seed);
    auto k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
      const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
      c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
           static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    return c;
  }

  // Uniform in [0, 1), 24 bits.
  float uniform(uint64_t index) const { return static_cast<float>(words(index / 4)[index % 4] >> 8) * 0x1.0p-24F; }

  // Standard normal (Box-Muller).
  float normal(uint64_t index) const {
    const auto w = words(index);
    const double u1 = (static_cast<double>(w[0]) + 1.0) * 0x1.0p-32;
    const double u2 = static_cast<double>(w[1]) * 0x1.0p-32;
    return static_cast<float>(std::sqrt(-2.0 * std::log(u1)) * std::cos(2.0 * std::numbers::pi * u2));
  }
};

}  // namespace snug
