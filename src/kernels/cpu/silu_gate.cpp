// silu_gate and its gradient (rows/silu_gate.h), elements split over threads.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/silu_gate.cpp"

#include <cstdint>

#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/kernels.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

#include "kernels/rows/silu_gate.h"

void silu_gate_part(const SiluGate& op, int64_t begin, int64_t end) {
  with_types(op.gate, op.up, op.out, [&](auto* gate, auto* up, auto* out) HWY_ATTR {
    silu_gate_row(HighwayLanes(), gate + begin, up + begin, out + begin, end - begin);
  });
}

void silu_gate_backward_part(const SiluGateBackward& op, int64_t begin, int64_t end) {
  with_types(op.gate, op.up, [&](auto* gate, auto* up) HWY_ATTR {
    silu_gate_backward_row(HighwayLanes(), op.d_out + begin, gate + begin, up + begin, op.d_gate + begin, op.d_up + begin,
                           end - begin);
  });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(silu_gate_part);
HWY_EXPORT(silu_gate_backward_part);

namespace {

constexpr int64_t kGrain = 64;  // elements: parts begin on cache lines

}  // namespace

void silu_gate(const SiluGate& op) {
  require_storage({op.gate.dtype, op.up.dtype, op.out.dtype});
  for_parts(op.cut.threads, op.rows * op.cols, kGrain, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(silu_gate_part)(op, begin, end);
  });
}

void silu_gate_backward(const SiluGateBackward& op) {
  require_storage({op.gate.dtype, op.up.dtype});
  for_parts(op.cut.threads, op.rows * op.cols, kGrain, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(silu_gate_backward_part)(op, begin, end);
  });
}

}  // namespace snug::kernels
#endif  // HWY_ONCE
