// Dropout from counters: Philox (base/philox.h) for 16 blocks of four elements side by side, so that compilers make vectors
// of it; the words are the same on every instruction set.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dropout.cpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/philox.h"
#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/kernels.h"

#ifndef SNUG_KERNELS_CPU_DROPOUT_MASK
#define SNUG_KERNELS_CPU_DROPOUT_MASK
namespace snug::kernels {

// What one draw needs: an element is left out where its word lies below `threshold`.
struct DropoutMask {
  Philox random;
  uint64_t first_block;  // of the micro-batch
  uint32_t threshold;
  float kept, left_out;  // factors
};

constexpr int64_t kBlocks = 16, kElements = 4 * kBlocks;

}  // namespace snug::kernels
#endif

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

// words[w * kBlocks + i] = word w of block `first` + i.
void draw_words(const Philox& random, uint64_t first, uint32_t* words) {
  uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
  for (int64_t i = 0; i < kBlocks; ++i) {
    const uint64_t index = first + static_cast<uint64_t>(i);
    c0[i] = static_cast<uint32_t>(index);
    c1[i] = static_cast<uint32_t>(index >> 32);
    c2[i] = static_cast<uint32_t>(random.stream);
    c3[i] = static_cast<uint32_t>(random.stream >> 32);
  }
  auto k0 = static_cast<uint32_t>(random.seed);
  auto k1 = static_cast<uint32_t>(random.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int64_t i = 0; i < kBlocks; ++i) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c0[i];
      const uint64_t p1 = uint64_t{0xCD9E8D57} * c2[i];
      c0[i] = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
      c1[i] = static_cast<uint32_t>(p1);
      c2[i] = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
      c3[i] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  std::copy_n(c0, kBlocks, words);
  std::copy_n(c1, kBlocks, words + kBlocks);
  std::copy_n(c2, kBlocks, words + 2 * kBlocks);
  std::copy_n(c3, kBlocks, words + 3 * kBlocks);
}

// factors[j] of elements `begin` … begin + kElements; begin is a multiple of four.
void draw_factors(const DropoutMask& mask, int64_t begin, float* factors) {
  uint32_t words[kElements];
  draw_words(mask.random, mask.first_block + static_cast<uint64_t>(begin) / 4, words);
  for (int64_t i = 0; i < kBlocks; ++i)
    for (int64_t w = 0; w < 4; ++w) factors[4 * i + w] = words[w * kBlocks + i] < mask.threshold ? mask.left_out : mask.kept;
}

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
          .first_block = scalar(Scalar::micro_batch) << 40,
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

}  // namespace snug::kernels
#endif  // HWY_ONCE
