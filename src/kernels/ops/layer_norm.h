#pragma once

#include "kernels/binding.h"

namespace snug::kernels {

// out = (x - mean) * rstd * weight + bias, rstd = 1/sqrt(variance + eps) (Ba et al. 2016).
struct LayerNorm {
  In x, weight, bias;                      // [M, C], [C], [C]
  Out out;                                 // [M, C]
  float *mean = nullptr, *rstd = nullptr;  // [M]
  int64_t rows = 0, cols = 0;
  float eps = 0;
  Cut cut;
};

// d_x (+)= the gradient through x; d_weight and d_bias are added to (both null where frozen).
// workspace: 2 * threads * C floats where they are wanted.
struct LayerNormBackward {
  const float* d_out = nullptr;                  // [M, C]
  In x, weight;                                  // [M, C], [C]
  const float *mean = nullptr, *rstd = nullptr;  // [M]
  float* d_x = nullptr;                          // [M, C]
  float *d_weight = nullptr, *d_bias = nullptr;  // [C]
  int64_t rows = 0, cols = 0;
  bool accumulate = false;  // into d_x
  Workspace workspace;
  Cut cut;
};

template <>
inline LayerNorm bind<LayerNorm>(const OpView& op) {
  const int64_t cols = op[Slot::weight].elements;
  return {.x = in(op, Slot::x),
          .weight = in(op, Slot::weight),
          .bias = in(op, Slot::bias),
          .out = out(op, Slot::out),
          .mean = floats(op, Slot::mean),
          .rstd = floats(op, Slot::rstd),
          .rows = op[Slot::x].elements / cols,
          .cols = cols,
          .eps = static_cast<float>(op.attributes.epsilon),
          .cut = op.cut};
}

template <>
inline LayerNormBackward bind<LayerNormBackward>(const OpView& op) {
  const int64_t cols = op[Slot::weight].elements;
  return {.d_out = floats(op, Slot::d_out),
          .x = in(op, Slot::x),
          .weight = in(op, Slot::weight),
          .mean = floats(op, Slot::mean),
          .rstd = floats(op, Slot::rstd),
          .d_x = floats(op, Slot::d_x),
          .d_weight = floats(op, Slot::d_weight),
          .d_bias = floats(op, Slot::d_bias),
          .rows = op[Slot::x].elements / cols,
          .cols = cols,
          .accumulate = op.attributes.accumulate,
          .workspace = workspace(op),
          .cut = op.cut};
}

}  // namespace snug::kernels
