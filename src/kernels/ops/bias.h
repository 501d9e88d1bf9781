#pragma once

#include "kernels/binding.h"

namespace snug::kernels {

// x[i, :] += bias.
struct AddBias {
  Out x;    // [M, N]
  In bias;  // [N]
  int64_t rows = 0, cols = 0;
  Cut cut;
};

// d_bias += sum over rows of d_out. workspace: threads * N floats.
struct BiasBackward {
  const float* d_out = nullptr;  // [M, N]
  float* d_bias = nullptr;       // [N]
  int64_t rows = 0, cols = 0;
  Workspace workspace;
  Cut cut;
};

template <>
inline AddBias bind<AddBias>(const OpView& op) {
  const int64_t cols = op[Slot::bias].elements;
  return {
      .x = out(op, Slot::x), .bias = in(op, Slot::bias), .rows = op[Slot::x].elements / cols, .cols = cols, .cut = op.cut};
}

template <>
inline BiasBackward bind<BiasBackward>(const OpView& op) {
  const int64_t cols = op[Slot::d_bias].elements;
  return {.d_out = floats(op, Slot::d_out),
          .d_bias = floats(op, Slot::d_bias),
          .rows = op[Slot::d_out].elements / cols,
          .cols = cols,
          .workspace = workspace(op),
          .cut = op.cut};
}

template <>
inline const char* missing<AddBias>(const OpView& op) {
  return op.has(Slot::tile_experts) ? "biases of experts" : nullptr;
}
template <>
inline const char* missing<BiasBackward>(const OpView& op) {
  return op.has(Slot::tile_experts) ? "biases of experts" : nullptr;
}

}  // namespace snug::kernels
