// activation and its gradient (rows/activation.h), elements split over threads.

#include <cstdint>

#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/table.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

#include "kernels/rows/activation.h"

// `p` moved on by `elements`; null stays null.
template <class T>
HWY_INLINE T* onwards(T* p, int64_t elements) {
  return p == nullptr ? p : p + elements;
}

template <Activation KIND>
void activate(const ActivationGate& op, int64_t begin, int64_t end) {
  with_types(op.gate, op.up, op.out, [&](auto* gate, auto* up, auto* out) HWY_ATTR {
    activation_row<KIND>(HighwayLanes(), gate + begin, onwards(up, begin), out + begin, end - begin);
  });
}

void activation_part(const ActivationGate& op, int64_t begin, int64_t end) {
  op.kind == Activation::silu ? activate<Activation::silu>(op, begin, end) : activate<Activation::gelu_tanh>(op, begin, end);
}

template <Activation KIND>
void differentiate(const ActivationGateBackward& op, int64_t begin, int64_t end) {
  with_types(op.gate, op.up, [&](auto* gate, auto* up) HWY_ATTR {
    activation_backward_row<KIND>(HighwayLanes(), op.d_out + begin, gate + begin, onwards(up, begin), op.d_gate + begin,
                                  onwards(op.d_up, begin), end - begin);
  });
}

void activation_backward_part(const ActivationGateBackward& op, int64_t begin, int64_t end) {
  op.kind == Activation::silu ? differentiate<Activation::silu>(op, begin, end)
                              : differentiate<Activation::gelu_tanh>(op, begin, end);
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(activation_part);
HWY_EXPORT(activation_backward_part);

namespace {}  // namespace

void activation(const ActivationGate& op) {
  require_storage({op.gate.dtype, op.up.dtype, op.out.dtype});
  for_parts(op.cut.threads, op.rows * op.cols, kLineGrain, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(activation_part)(op, begin, end);
  });
}

void activation_backward(const ActivationGateBackward& op) {
  require_storage({op.gate.dtype, op.up.dtype});
  for_parts(op.cut.threads, op.rows * op.cols, kLineGrain, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(activation_backward_part)(op, begin, end);
  });
}

const Kernel cpu::activation = cpu::plain<ActivationGate, kernels::activation>();
const Kernel cpu::activation_backward = cpu::plain<ActivationGateBackward, kernels::activation_backward>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
