// Philox (base/philox.h) a block of four words in each lane, in HWY_NAMESPACE: read once for each instruction set, after
// highway_lanes.h. The words are the same on all.

#include <cstdint>

#include "base/philox.h"

#ifndef SNUG_KERNELS_CPU_DRAWN
#define SNUG_KERNELS_CPU_DRAWN
namespace snug::kernels {
constexpr int64_t kDrawnBlocks = 32, kDrawn = 4 * kDrawnBlocks;  // at a time
}
#endif

#if defined(SNUG_KERNELS_CPU_PHILOX_LANES_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SNUG_KERNELS_CPU_PHILOX_LANES_H
#undef SNUG_KERNELS_CPU_PHILOX_LANES_H
#else
#define SNUG_KERNELS_CPU_PHILOX_LANES_H
#endif

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

using Words = hn::Rebind<uint32_t, HighwayLanes::Tag>;
using Word = hn::Vec<Words>;

#if HWY_TARGET == HWY_SCALAR

// out[j] = number_of(word j) for the kDrawn words of the blocks from `first_block` on.
template <class NumberOf>
HWY_INLINE void draw(const Philox& random, uint64_t first_block, const NumberOf& number_of, float* out) {
  for (int64_t block = 0; block < kDrawnBlocks; ++block)
    for (const uint32_t word : random.words(first_block + static_cast<uint64_t>(block)))
      *out++ = hn::GetLane(number_of(hn::Set(Words(), word)));
}

#else

// The upper and lower half of each lane's product with `factor`.
HWY_INLINE void multiply_wide(Word a, uint32_t factor, Word& high, Word& low) {
  const Words words;
  const hn::RepartitionToWide<Words> wide;
  const auto by = hn::Set(words, factor);
  const auto even = hn::MulEven(a, by);
  const auto odd = hn::MulEven(hn::BitCast(words, hn::ShiftRight<32>(hn::BitCast(wide, a))), by);
  high = hn::OddEven(hn::BitCast(words, odd), hn::BitCast(words, hn::ShiftRight<32>(even)));
  low = hn::OddEven(hn::BitCast(words, hn::ShiftLeft<32>(odd)), hn::BitCast(words, even));
}

template <class NumberOf>
HWY_INLINE void draw(const Philox& random, uint64_t first_block, const NumberOf& number_of, float* out) {
  const Words words;
  const HighwayLanes::Tag floats;
  constexpr int kSide = 2;  // vectors side by side, so that one's multiplications fill the other's waits
  for (int64_t block = 0; block < kDrawnBlocks; block += kSide * HighwayLanes::kWidth) {
    Word c0[kSide], c1[kSide], c2[kSide], c3[kSide];
    SNUG_UNROLL for (int v = 0; v < kSide; ++v) {
      const uint64_t index = first_block + static_cast<uint64_t>(block + v * HighwayLanes::kWidth);
      const auto first = hn::Set(words, static_cast<uint32_t>(index));
      const auto upper = static_cast<uint32_t>(index >> 32);
      c0[v] = hn::Add(first, hn::Iota(words, 0));
      c1[v] = hn::IfThenElse(hn::Lt(c0[v], first), hn::Set(words, upper + 1), hn::Set(words, upper));
      c2[v] = hn::Set(words, static_cast<uint32_t>(random.stream));
      c3[v] = hn::Set(words, static_cast<uint32_t>(random.stream >> 32));
    }
    auto k0 = static_cast<uint32_t>(random.seed);
    auto k1 = static_cast<uint32_t>(random.seed >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9U, k1 += 0xBB67AE85U) {
      SNUG_UNROLL for (int v = 0; v < kSide; ++v) {
        Word high0, low0, high2, low2;
        multiply_wide(c0[v], 0xD2511F53U, high0, low0);
        multiply_wide(c2[v], 0xCD9E8D57U, high2, low2);
        c0[v] = hn::Xor(hn::Xor(high2, c1[v]), hn::Set(words, k0));
        c1[v] = low2;
        c2[v] = hn::Xor(hn::Xor(high0, c3[v]), hn::Set(words, k1));
        c3[v] = low0;
      }
    }
    SNUG_UNROLL for (int v = 0; v < kSide; ++v) {
      float* const to = out + 4 * (block + v * HighwayLanes::kWidth);
      hn::StoreInterleaved4(number_of(c0[v]), number_of(c1[v]), number_of(c2[v]), number_of(c3[v]), floats, to);
    }
  }
}

#endif

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
