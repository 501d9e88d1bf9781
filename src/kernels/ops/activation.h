#pragma once

#include "kernels/binding.h"

namespace snug::kernels {

// out = activation(gate) * up, or activation(gate) where up's data is null.
struct ActivationGate {
  In gate, up;  // [M, F]
  Out out;      // [M, F]
  int64_t rows = 0, cols = 0;
  Activation kind = Activation::silu;
  Cut cut;
};

// d_gate and d_up may each be the same memory as d_out; up and d_up are null together.
struct ActivationGateBackward {
  const float* d_out = nullptr;  // [M, F]
  In gate, up;                   // [M, F]
  float* d_gate = nullptr;
  float* d_up = nullptr;
  int64_t rows = 0, cols = 0;
  Activation kind = Activation::silu;
  Cut cut;
};

template <>
inline ActivationGate bind<ActivationGate>(const OpView& op) {
  return {.gate = in(op, Slot::gate),
          .up = in(op, Slot::up),
          .out = out(op, Slot::out),
          .rows = op[Slot::gate].elements / op[Slot::gate].last_dim(),
          .cols = op[Slot::gate].last_dim(),
          .kind = op.attributes.activation,
          .cut = op.cut};
}

template <>
inline ActivationGateBackward bind<ActivationGateBackward>(
    const OpView& op) {  // d_up takes d_out's place, or d_gate where there is no up
  return {.d_out = floats(op, Slot::d_out),
          .gate = in(op, Slot::gate),
          .up = in(op, Slot::up),
          .d_gate = floats(op, op.has(Slot::up) ? Slot::d_gate : Slot::d_out),
          .d_up = op.has(Slot::up) ? floats(op, Slot::d_out) : nullptr,
          .rows = op[Slot::gate].elements / op[Slot::gate].last_dim(),
          .cols = op[Slot::gate].last_dim(),
          .kind = op.attributes.activation,
          .cut = op.cut};
}

}  // namespace snug::kernels
