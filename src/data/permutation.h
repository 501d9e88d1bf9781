#pragma once
// A shuffle without a table: a keyed bijection of 0 … n-1, so that "row i of epoch e" is a pure function. A Feistel network
// over the next power of four (Luby, Rackoff, "How to construct pseudorandom permutations", 1988) whose results outside the
// range are sent through again (cycle walking: Black, Rogaway, "Ciphers with arbitrary finite domains", 2002); fewer than
// four rounds of that on average.

#include <bit>
#include <cstdint>

#include "base/philox.h"

namespace snug {

class Permutation {
 public:
  // Of 0 … n-1 (n ≥ 1, below 2^62), for this seed and epoch.
  Permutation(uint64_t n, uint64_t seed, uint64_t epoch)
      : random_{seed, kStream ^ epoch}, n_(n), half_bits_((static_cast<int>(std::bit_width(n - 1)) + 1) / 2) {}

  // Where `i` (< n) goes.
  uint64_t operator()(uint64_t i) const {
    do {
      i = scramble(i);
    } while (i >= n_);
    return i;
  }

 private:
  static constexpr uint64_t kStream = 0x73687566'66000000;  // "shuff"
  static constexpr uint64_t kRounds = 8;

  uint64_t scramble(uint64_t i) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = i >> half_bits_;
    uint64_t right = i & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t mixed = left ^ (random_.words(right * kRounds + round)[0] & mask);
      left = right;
      right = mixed;
    }
    return left << half_bits_ | right;
  }

  Philox random_;
  uint64_t n_;
  int half_bits_;
};

}  // namespace snug
