#pragma once

#include "kernels/binding.h"

namespace snug::kernels {

// out = x * rstd * (weight_offset + weight), rstd = 1/sqrt(mean(x^2) + eps) (Zhang & Sennrich 2019).
struct RmsNorm {
  In x, weight;           // [M, C], [C]
  Out out;                // [M, C]
  float* rstd = nullptr;  // [M]
  int64_t rows = 0, cols = 0;
  float eps = 0;
  float weight_offset = 0;  // 1 in Gemma, whose weights are gains less one
  Cut cut;
};

// d_x (+)= the gradient through x; d_weight += sum over rows of d_out * x * rstd (null where the weight is frozen).
// workspace: threads * C floats where d_weight is wanted.
struct RmsNormBackward {
  const float* d_out = nullptr;  // [M, C]
  In x, weight;                  // [M, C], [C]
  const float* rstd = nullptr;   // [M]
  float* d_x = nullptr;          // [M, C]
  float* d_weight = nullptr;     // [C]
  int64_t rows = 0, cols = 0;
  bool accumulate = false;  // into d_x
  float weight_offset = 0;
  Workspace workspace;
  Cut cut;
};

template <>
inline RmsNorm bind<RmsNorm>(const OpView& op) {
  const int64_t cols = op[Slot::weight].elements;
  return {.x = in(op, Slot::x),
          .weight = in(op, Slot::weight),
          .out = out(op, Slot::out),
          .rstd = floats(op, Slot::rstd),
          .rows = op[Slot::x].elements / cols,
          .cols = cols,
          .eps = static_cast<float>(op.attributes.epsilon),
          .weight_offset = static_cast<float>(op.attributes.weight_offset),
          .cut = op.cut};
}

template <>
inline RmsNormBackward bind<RmsNormBackward>(const OpView& op) {
  const int64_t cols = op[Slot::weight].elements;
  return {.d_out = floats(op, Slot::d_out),
          .x = in(op, Slot::x),
          .weight = in(op, Slot::weight),
          .rstd = floats(op, Slot::rstd),
          .d_x = floats(op, Slot::d_x),
          .d_weight = floats(op, Slot::d_weight),
          .rows = op[Slot::x].elements / cols,
          .cols = cols,
          .accumulate = op.attributes.accumulate,
          .weight_offset = static_cast<float>(op.attributes.weight_offset),
          .workspace = workspace(op),
          .cut = op.cut};
}

}  // namespace snug::kernels
