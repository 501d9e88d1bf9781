// Lion over flat buffers (rows/lion.h). States in u8 are decoded block by block, updated by the same rows and encoded again
// (state_codes.h).

#include <cstdint>

#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/state_codes.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/table.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

#include "kernels/rows/lion.h"

LionStep lion_step(const Lion& op) {
  const auto scalar = [&](Scalar which) { return op.scalars[static_cast<int32_t>(which)]; };
  const double learning_rate = scalar(Scalar::learning_rate);
  const bool as_on_cuda = op.first_moment.dtype == DType::u8;  // betas are floats there, which 1 - beta shows
  const double beta1 = as_on_cuda ? static_cast<float>(op.beta1) : op.beta1;
  const double beta2 = as_on_cuda ? static_cast<float>(op.beta2) : op.beta2;
  return {.gradient_factor = static_cast<float>(scalar(Scalar::clip_factor)),
          .decay = static_cast<float>(1.0 - learning_rate * op.weight_decay),
          .beta1 = static_cast<float>(beta1),
          .beta2 = static_cast<float>(beta2),
          .fresh1 = static_cast<float>(1.0 - beta1),
          .fresh2 = static_cast<float>(1.0 - beta2),
          .learning_rate = static_cast<float>(learning_rate)};
}

void lion_part(const Lion& op, int64_t begin, int64_t end) {
  const LionStep step = lion_step(op);
  with_type(op.parameter, [&](auto* parameter) HWY_ATTR {
    const float* const gradient = op.gradient + begin;
    float* const state = as_float(op.first_moment) + begin;
    if (op.master != nullptr) {
      lion_row(HighwayLanes(), step, op.master + begin, parameter + begin, gradient, state, end - begin);
    } else {
      lion_row(HighwayLanes(), step, parameter + begin, parameter + begin, gradient, state, end - begin);
    }
  });
}

// One block, whose state is already decoded; begin is its first element.
template <class P, class Rounded>
void lion_block(const Lion& op, const LionStep& step, P* p, Rounded* rounded, float* state, int64_t begin, int64_t n) {
  const float* const gradient = op.gradient + begin;
  for_finite_runs(
      gradient, n,
      [&](int64_t i, int64_t count)
          HWY_ATTR { lion_row(HighwayLanes(), step, p + begin + i, rounded + begin + i, gradient + i, state + i, count); },
      [&](int64_t i) { state[i] = 0.0F; });
}

void lion_coded_part(const Lion& op, int64_t begin, int64_t end) {
  const LionStep step = lion_step(op);
  with_type(op.parameter, [&](auto* parameter) HWY_ATTR {
    alignas(64) float state[kStateBlock];
    for (int64_t at = begin; at < end; at += kStateBlock) {
      const int64_t n = std::min(kStateBlock, end - at);
      decode(op.first_moment, DynamicMap::of_signed(), at, n, state);
      if (op.master != nullptr) {
        lion_block(op, step, op.master, parameter, state, at, n);
      } else {
        lion_block(op, step, parameter, parameter, state, at, n);
      }
      encode_signed(op.first_moment, at, n, state);
    }
  });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(lion_part);
HWY_EXPORT(lion_coded_part);

void lion(const Lion& op) {
  require_storage({op.parameter.dtype});
  const bool coded = op.first_moment.dtype == DType::u8;
  for_parts(op.cut.threads, op.elements, kStateBlock, [&](int32_t, int64_t begin, int64_t end) {
    if (coded) {
      HWY_DYNAMIC_DISPATCH(lion_coded_part)(op, begin, end);
    } else {
      HWY_DYNAMIC_DISPATCH(lion_part)(op, begin, end);
    }
  });
}

const Kernel cpu::lion = cpu::plain<Lion, kernels::lion>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
