// Stochastic gradient descent over flat buffers (rows/sgd.h).

#include <cstdint>

#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/table.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

#include "kernels/rows/sgd.h"

SgdStep sgd_step(const Sgd& op) {
  const auto scalar = [&](Scalar which) { return op.scalars[static_cast<int32_t>(which)]; };
  return {.gradient_factor = static_cast<float>(scalar(Scalar::clip_factor)),
          .weight_decay = static_cast<float>(op.weight_decay),
          .momentum = static_cast<float>(op.momentum),
          .learning_rate = static_cast<float>(scalar(Scalar::learning_rate))};
}

void sgd_part(const Sgd& op, int64_t begin, int64_t end) {
  const SgdStep step = sgd_step(op);
  with_type(op.parameter, [&](auto* parameter) HWY_ATTR {
    const float* const gradient = op.gradient + begin;
    float* const state = op.velocity == nullptr ? nullptr : op.velocity + begin;
    if (op.master != nullptr) {
      sgd_row(HighwayLanes(), step, op.master + begin, parameter + begin, gradient, state, end - begin);
    } else {
      sgd_row(HighwayLanes(), step, parameter + begin, parameter + begin, gradient, state, end - begin);
    }
  });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(sgd_part);

void sgd(const Sgd& op) {
  require_storage({op.parameter.dtype});
  for_parts(op.cut.threads, op.elements, kLineGrain, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(sgd_part)(op, begin, end);
  });
}

const Kernel cpu::sgd = cpu::plain<Sgd, kernels::sgd>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
