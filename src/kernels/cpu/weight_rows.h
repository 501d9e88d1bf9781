// How a kernel reads a few numbers of a frozen weight that it does not multiply: in HWY_NAMESPACE, once for each instruction
// set. The one place that other storage of weights has to mend for them.

#include <cstdint>

#include "kernels/cpu/dequantize.h"
#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/storage.h"

#if defined(SNUG_KERNELS_CPU_WEIGHT_ROWS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SNUG_KERNELS_CPU_WEIGHT_ROWS_H
#undef SNUG_KERNELS_CPU_WEIGHT_ROWS_H
#else
#define SNUG_KERNELS_CPU_WEIGHT_ROWS_H
#endif

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

// out[0 … count) = elements begin … begin + count of the weight.
inline void widen_weight(const In& weight, int64_t begin, int64_t count, float* out) {
  if (is_quantized(weight)) return dequantize(weight, begin, count, out);
  using Lanes = HighwayLanes;
  with_type(weight, [&](auto* p) HWY_ATTR {
    for (int64_t i = 0; i < count; i += Lanes::kWidth) Lanes::store(Lanes::load(p + begin, i, count), out, i, count);
  });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
