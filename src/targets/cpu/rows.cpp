// Norms, biases and routing: threads sum their rows' share of a weight's gradient apart.

#include "base/checked.h"
#include "targets/cpu/sizing.h"

namespace snug::cpu {
namespace {

int64_t sums_for_each_thread(const OpView& op, Slot gradient, int64_t gradients, const Machine& machine) {
  if (!op.has(gradient)) return 0;
  return checked_mul(gradients * machine.threads, bytes_of(DType::f32, op[gradient].elements));
}

int64_t rms_norm_backward(const OpView& op, const Machine& machine) {
  return sums_for_each_thread(op, Slot::d_weight, 1, machine);
}

int64_t layer_norm_backward(const OpView& op, const Machine& machine) {
  return sums_for_each_thread(op, Slot::d_weight, 2, machine);
}

int64_t bias_backward(const OpView& op, const Machine& machine) {
  if (op.has(Slot::tile_experts)) return 0;  // an expert's rows stand together: one thread sums them
  return sums_for_each_thread(op, Slot::d_bias, 1, machine);
}

int64_t route(const OpView& op, const Machine&) { return bytes_of(DType::i32, op[Slot::logits].dim(1)); }

}  // namespace

const OpSizing sizing::rms_norm_backward = {even_cut, cpu::rms_norm_backward};
const OpSizing sizing::layer_norm_backward = {even_cut, cpu::layer_norm_backward};
const OpSizing sizing::bias_backward = {even_cut, cpu::bias_backward};
const OpSizing sizing::route = {even_cut, cpu::route};

}  // namespace snug::cpu
