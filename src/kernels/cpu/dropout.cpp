// Dropout from counters: Philox (base/philox.h) for a block of four elements in each lane; the words are the same on every
// instruction set.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dropout.cpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/philox.h"
#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/table.h"

#ifndef SNUG_KERNELS_CPU_DROPOUT_MASK
#define SNUG_KERNELS_CPU_DROPOUT_MASK
namespace snug::kernels {

// What one draw needs: an element is left out where its word lies below `threshold`.
struct DropoutMask {
  Philox random;
  uint64_t first_block;  // of the micro-batch
  uint32_t threshold;
  float kept, left_out;  // factors

  float factor(uint32_t word) const { return word < threshold ? left_out : kept; }
};

constexpr int64_t kBlocks = 32, kElements = 4 * kBlocks;

}  // namespace snug::kernels
#endif

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

// factors[j] of elements `begin` … begin + kElements; begin is a multiple of four.
void draw_factors(const DropoutMask& mask, int64_t begin, float* factors) {
  for (int64_t i = 0; i < kBlocks; ++i) {
    const auto words = mask.random.words(mask.first_block + static_cast<uint64_t>(begin / 4 + i));
    for (size_t w = 0; w < 4; ++w) factors[4 * i + static_cast<int64_t>(w)] = mask.factor(words[w]);
  }
}

#else

using Words = hn::Rebind<uint32_t, HighwayLanes::Tag>;
using Word = hn::Vec<Words>;

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

// factors[j] of elements `begin` … begin + kElements; begin is a multiple of four. A lane draws one block of Philox.
void draw_factors(const DropoutMask& mask, int64_t begin, float* factors) {
  const Words words;
  const HighwayLanes::Tag floats;
  const auto threshold = hn::Set(words, mask.threshold);
  const auto factors_of = [&](Word drawn) HWY_ATTR {
    const auto gone = hn::RebindMask(floats, hn::Lt(drawn, threshold));
    return hn::IfThenElse(gone, hn::Set(floats, mask.left_out), hn::Set(floats, mask.kept));
  };
  constexpr int kSide = 2;  // vectors side by side, so that one's multiplications fill the other's waits
  for (int64_t block = 0; block < kBlocks; block += kSide * HighwayLanes::kWidth) {
    Word c0[kSide], c1[kSide], c2[kSide], c3[kSide];
    SNUG_UNROLL for (int v = 0; v < kSide; ++v) {
      const uint64_t index = mask.first_block + static_cast<uint64_t>(begin / 4 + block + v * HighwayLanes::kWidth);
      const auto first = hn::Set(words, static_cast<uint32_t>(index));
      const auto upper = static_cast<uint32_t>(index >> 32);
      c0[v] = hn::Add(first, hn::Iota(words, 0));
      c1[v] = hn::IfThenElse(hn::Lt(c0[v], first), hn::Set(words, upper + 1), hn::Set(words, upper));
      c2[v] = hn::Set(words, static_cast<uint32_t>(mask.random.stream));
      c3[v] = hn::Set(words, static_cast<uint32_t>(mask.random.stream >> 32));
    }
    auto k0 = static_cast<uint32_t>(mask.random.seed);
    auto k1 = static_cast<uint32_t>(mask.random.seed >> 32);
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
      float* const to = factors + 4 * (block + v * HighwayLanes::kWidth);
      hn::StoreInterleaved4(factors_of(c0[v]), factors_of(c1[v]), factors_of(c2[v]), factors_of(c3[v]), floats, to);
    }
  }
}

#endif

void dropout_part(const Dropout& op, const DropoutMask& mask, int64_t begin, int64_t end) {
  const HighwayLanes lanes;
  alignas(64) float factors[kElements];
  with_types(op.x, op.out, [&](auto* x, auto* out) HWY_ATTR {
    for (int64_t at = begin; at < end; at += kElements) {
      draw_factors(mask, at, factors);
      const int64_t n = std::min(kElements, end - at);
      for (int64_t i = 0; i < n; i += lanes.width()) {
        const auto value = lanes.mul(lanes.load(x + at, i, n), lanes.load(factors, i, kElements));
        lanes.store(op.accumulate ? lanes.add(lanes.load(out + at, i, n), value) : value, out + at, i, n);
      }
    }
  });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(dropout_part);

namespace {

constexpr uint64_t kPurpose = 0x64726f706f757400;  // "dropout": the seed serves other draws too

DropoutMask mask_of(const Dropout& op) {
  const auto scalar = [&](Scalar which) { return static_cast<uint64_t>(op.scalars[static_cast<int32_t>(which)]); };
  const uint64_t step = scalar(Scalar::step) & 0xffffffffU;
  const auto kept = static_cast<float>(1.0 / (1.0 - op.probability));
  return {.random = {op.seed ^ kPurpose, op.stream << 48 | static_cast<uint64_t>(op.layer) << 32 | step},
          .first_block = (scalar(Scalar::micro_batch) << 40) + static_cast<uint64_t>(op.first_element / 4),
          .threshold = static_cast<uint32_t>(std::min(std::round(op.probability * 0x1p32), 0x1p32 - 1)),
          .kept = op.complement ? 1.0F - kept : kept,
          .left_out = op.complement ? 1.0F : 0.0F};
}

}  // namespace

void dropout(const Dropout& op) {
  require_storage({op.x.dtype, op.out.dtype});
  const DropoutMask mask = mask_of(op);
  for_parts(op.cut.threads, op.elements, kElements, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(dropout_part)(op, mask, begin, end);
  });
}

const Kernel cpu::dropout = cpu::plain<Dropout, kernels::dropout>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
