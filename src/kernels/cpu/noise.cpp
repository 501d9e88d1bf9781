// Noise from counters (kernels/cpu/philox_lanes.h).

#include <algorithm>
#include <cstdint>

#include "base/philox.h"
#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/table.h"
#include "kernels/ops/noise.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"
#include "kernels/cpu/philox_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

void noise_part(const Noise& op, const Philox& random, uint64_t first_block, int64_t begin, int64_t end) {
  using Lanes = HighwayLanes;
  const HighwayLanes::Tag floats;
  const hn::Rebind<int32_t, HighwayLanes::Tag> integers;
  const auto unit = hn::Set(floats, op.magnitude * 0x1p-31F);
  const auto addend_of = [&](Word drawn)
                             HWY_ATTR { return hn::Mul(hn::ConvertTo(floats, hn::BitCast(integers, drawn)), unit); };
  alignas(64) float addends[kDrawn];
  with_type(op.x, [&](auto* x) HWY_ATTR {
    for (int64_t at = begin; at < end; at += kDrawn) {
      draw(random, first_block + static_cast<uint64_t>(at / 4), addend_of, addends);
      const int64_t n = std::min(kDrawn, end - at);
      for (int64_t i = 0; i < n; i += Lanes::kWidth)
        Lanes::store(Lanes::add(Lanes::load(x + at, i, n), Lanes::load(addends, i, kDrawn)), x + at, i, n);
    }
  });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(noise_part);

void noise(const Noise& op) {
  constexpr uint64_t kPurposeOfNoise = 0x6e6f697365000000;  // "noise": the seed serves other draws too
  require_storage({op.x.dtype});
  const auto scalar = [&](Scalar which) { return static_cast<uint64_t>(op.scalars[static_cast<int32_t>(which)]); };
  const Philox random{op.seed ^ kPurposeOfNoise, scalar(Scalar::step)};
  const uint64_t first_block = (scalar(Scalar::micro_batch) << 40) + static_cast<uint64_t>(op.first_element / 4);
  for_parts(op.cut.threads, op.elements, kDrawn, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(noise_part)(op, random, first_block, begin, end);
  });
}

const Kernel cpu::noise = cpu::plain<Noise, kernels::noise>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
