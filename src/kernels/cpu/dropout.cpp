// Dropout from counters (kernels/cpu/philox_lanes.h).

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
};

}  // namespace snug::kernels
#endif

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"
#include "kernels/cpu/philox_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

void dropout_part(const Dropout& op, const DropoutMask& mask, int64_t begin, int64_t end) {
  using Lanes = HighwayLanes;
  const HighwayLanes::Tag floats;
  const auto threshold = hn::Set(Words(), mask.threshold);
  const auto factor_of = [&](Word drawn) HWY_ATTR {
    const auto gone = hn::RebindMask(floats, hn::Lt(drawn, threshold));
    return hn::IfThenElse(gone, hn::Set(floats, mask.left_out), hn::Set(floats, mask.kept));
  };
  alignas(64) float factors[kDrawn];
  with_types(op.x, op.out, [&](auto* x, auto* out) HWY_ATTR {
    for (int64_t at = begin; at < end; at += kDrawn) {
      draw(mask.random, mask.first_block + static_cast<uint64_t>(at / 4), factor_of, factors);
      const int64_t n = std::min(kDrawn, end - at);
      for (int64_t i = 0; i < n; i += Lanes::kWidth) {
        const auto value = Lanes::mul(Lanes::load(x + at, i, n), Lanes::load(factors, i, kDrawn));
        Lanes::store(op.accumulate ? Lanes::add(Lanes::load(out + at, i, n), value) : value, out + at, i, n);
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
  for_parts(op.cut.threads, op.elements, kDrawn, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(dropout_part)(op, mask, begin, end);
  });
}

const Kernel cpu::dropout = cpu::plain<Dropout, kernels::dropout>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
