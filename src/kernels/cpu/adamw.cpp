// AdamW over flat buffers (rows/adamw.h). Bias corrections are computed in fp64. States in bf16 or u8 are decoded block by
// block, updated by the same rows and encoded again (state_codes.h).

#include <cmath>
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

#include "kernels/rows/adamw.h"

AdamWStep step_of(const AdamW& op) {
  const auto scalar = [&](Scalar which) { return op.scalars[static_cast<int32_t>(which)]; };
  const double learning_rate = scalar(Scalar::learning_rate), step = scalar(Scalar::step);
  const bool as_on_cuda = op.first_moment.dtype == DType::u8;  // betas are floats there, which 1 - beta shows
  const double beta1 = as_on_cuda ? static_cast<float>(op.beta1) : op.beta1;
  const double beta2 = as_on_cuda ? static_cast<float>(op.beta2) : op.beta2;
  const double decay = 1.0 - learning_rate * op.weight_decay;
  return {.gradient_factor = static_cast<float>(scalar(Scalar::clip_factor)),
          .decay = as_on_cuda ? 1.0F : static_cast<float>(decay),
          .beta1 = static_cast<float>(beta1),
          .beta2 = static_cast<float>(beta2),
          .fresh1 = static_cast<float>(1.0 - beta1),
          .fresh2 = static_cast<float>(1.0 - beta2),
          .inverse_root_bias2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(beta2, step))),
          .epsilon = static_cast<float>(op.epsilon),
          .step_size = static_cast<float>(learning_rate / (1.0 - std::pow(beta1, step))),
          .decay_after = as_on_cuda ? static_cast<float>(decay) : 1.0F};
}

void adamw_part(const AdamW& op, int64_t begin, int64_t end) {
  const AdamWStep step = step_of(op);
  with_type(op.parameter, [&](auto* parameter) HWY_ATTR {
    const auto* gradient = op.gradient + begin;
    float* const first = as_float(op.first_moment) + begin;
    float* const second = as_float(op.second_moment) + begin;
    if (op.master != nullptr) {
      adamw_row(HighwayLanes(), step, op.master + begin, parameter + begin, gradient, first, second, end - begin);
    } else {
      adamw_row(HighwayLanes(), step, parameter + begin, parameter + begin, gradient, first, second, end - begin);
    }
  });
}

// One block, whose states are already decoded; begin is its first element.
template <class P, class Rounded>
void adamw_block(const AdamW& op, const AdamWStep& step, P* p, Rounded* rounded, float* first, float* second, int64_t begin,
                 int64_t n) {
  const float* const gradient = op.gradient + begin;
  for_finite_runs(
      gradient, n,
      [&](int64_t i, int64_t count) HWY_ATTR {
        adamw_row(HighwayLanes(), step, p + begin + i, rounded + begin + i, gradient + i, first + i, second + i, count);
      },
      [&](int64_t i) { first[i] = second[i] = 0.0F; });
}

void adamw_coded_part(const AdamW& op, int64_t begin, int64_t end) {
  const AdamWStep step = step_of(op);
  const auto noise_step = static_cast<uint64_t>(op.scalars[static_cast<int32_t>(Scalar::step)]);
  const StochasticRounding rounding(op.seed, op.stream, noise_step, op.first_element);
  with_type(op.parameter, [&](auto* parameter) HWY_ATTR {
    alignas(64) float first[kStateBlock], second[kStateBlock];
    for (int64_t at = begin; at < end; at += kStateBlock) {
      const int64_t n = std::min(kStateBlock, end - at);
      decode(op.first_moment, DynamicMap::of_signed(), at, n, first);
      decode(op.second_moment, DynamicMap::of_unsigned(), at, n, second);
      if (op.master != nullptr) {
        adamw_block(op, step, op.master, parameter, first, second, at, n);
      } else {
        adamw_block(op, step, parameter, parameter, first, second, at, n);
      }
      if (op.first_moment.dtype == DType::bf16) {
        rounding.round(as_bf16(op.first_moment), as_bf16(op.second_moment), first, second, at, n);
      } else {
        encode_signed(op.first_moment, at, n, first);
        encode_unsigned(op.second_moment, at, n, second);
      }
    }
  });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(adamw_part);
HWY_EXPORT(adamw_coded_part);

void adamw(const AdamW& op) {
  require_storage({op.parameter.dtype});
  const bool coded = op.first_moment.dtype != DType::f32;
  for_parts(op.cut.threads, op.elements, kStateBlock, [&](int32_t, int64_t begin, int64_t end) {
    if (coded) {
      HWY_DYNAMIC_DISPATCH(adamw_coded_part)(op, begin, end);
    } else {
      HWY_DYNAMIC_DISPATCH(adamw_part)(op, begin, end);
    }
  });
}

const Kernel cpu::adamw = cpu::plain<AdamW, kernels::adamw>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
