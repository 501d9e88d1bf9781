// AdamW over flat buffers (rows/adamw.h). Bias corrections are computed in fp64.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw.cpp"

#include <cmath>
#include <cstdint>

#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/kernels.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

#include "kernels/rows/adamw.h"

AdamWStep step_of(const AdamW& op) {
  const auto scalar = [&](Scalar which) { return op.scalars[static_cast<int32_t>(which)]; };
  const double learning_rate = scalar(Scalar::learning_rate), step = scalar(Scalar::step);
  const double beta1 = op.beta1, beta2 = op.beta2;
  return {.gradient_factor = static_cast<float>(scalar(Scalar::clip_factor)),
          .decay = static_cast<float>(1.0 - learning_rate * op.weight_decay),
          .beta1 = static_cast<float>(beta1),
          .beta2 = static_cast<float>(beta2),
          .fresh1 = static_cast<float>(1.0 - beta1),
          .fresh2 = static_cast<float>(1.0 - beta2),
          .inverse_root_bias2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(beta2, step))),
          .epsilon = static_cast<float>(op.epsilon),
          .step_size = static_cast<float>(learning_rate / (1.0 - std::pow(beta1, step)))};
}

void adamw_part(const AdamW& op, int64_t begin, int64_t end) {
  const AdamWStep step = step_of(op);
  with_type(op.parameter, [&](auto* parameter) HWY_ATTR {
    const auto* gradient = op.gradient + begin;
    float* const first = op.first_moment + begin;
    float* const second = op.second_moment + begin;
    if (op.master != nullptr) {
      adamw_row(HighwayLanes(), step, op.master + begin, parameter + begin, gradient, first, second, end - begin);
    } else {
      adamw_row(HighwayLanes(), step, parameter + begin, parameter + begin, gradient, first, second, end - begin);
    }
  });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(adamw_part);

void adamw(const AdamW& op) {
  constexpr int64_t kGrain = 64;  // elements: parts begin on cache lines
  require_storage({op.parameter.dtype});
  for_parts(op.cut.threads, op.elements, kGrain, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(adamw_part)(op, begin, end);
  });
}

}  // namespace snug::kernels
#endif  // HWY_ONCE
