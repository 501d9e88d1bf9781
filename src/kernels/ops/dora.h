#pragma once

#include "kernels/binding.h"

namespace snug::kernels {

// norm[o] = the length of row o of weight + scale * B A, as DoRA needs it (Liu et al., 2024). weight [out, in], or [in, out]
// if `input_features_first`. a, b null: of the weight alone. Rows are made a few at a time. workspace: kDoraPanel floats for
// each thread, for [in, out] (kDoraColumns + 1) * rank + 3 * kDoraColumns.
struct DoraNorm {
  In weight;
  const float* a = nullptr;              // [rank, in]
  const float* b = nullptr;              // [out, rank]
  float* norm = nullptr;                 // [out]
  int64_t rows = 0, cols = 0, rank = 0;  // out, in
  float scale = 1.0F;
  bool input_features_first = false;
  Workspace workspace;
  Cut cut;
};

// out[i, j] = x[i, j] * magnitude[j] / norm[j]. out may be the same memory as x.
struct ScaleColumns {
  In x;                              // [M, N]
  const float* magnitude = nullptr;  // [N]
  const float* norm = nullptr;       // [N]
  Out out;                           // [M, N]
  int64_t rows = 0, cols = 0;
  Workspace workspace;  // N floats
  Cut cut;
};

// d_x[i, j] = d_out[i, j] * magnitude[j] / norm[j]; d_magnitude[j] += the sum over i of d_out[i, j] * x[i, j] / norm[j].
// d_x may be the same memory as d_out. workspace: (threads + 1) * N floats.
struct ScaleColumnsBackward {
  const float* d_out = nullptr;
  In x;
  const float* magnitude = nullptr;
  const float* norm = nullptr;
  float* d_x = nullptr;
  float* d_magnitude = nullptr;
  int64_t rows = 0, cols = 0;
  Workspace workspace;
  Cut cut;
};

template <>
inline DoraNorm bind<DoraNorm>(const OpView& op) {
  const int64_t rows = op[Slot::norm].elements;
  return {.weight = matrix(op, Slot::weight),
          .a = floats(op, Slot::a),
          .b = floats(op, Slot::b),
          .norm = floats(op, Slot::norm),
          .rows = rows,
          .cols = op[Slot::weight].elements / rows,
          .rank = op.has(Slot::a) ? op[Slot::a].dim(0) : 0,
          .scale = static_cast<float>(op.attributes.scale),
          .input_features_first = !op.attributes.transpose_b,
          .workspace = workspace(op),
          .cut = op.cut};
}

template <>
inline ScaleColumns bind<ScaleColumns>(const OpView& op) {
  const int64_t cols = op[Slot::norm].elements;
  return {.x = in(op, Slot::x),
          .magnitude = floats(op, Slot::magnitude),
          .norm = floats(op, Slot::norm),
          .out = out(op, Slot::out),
          .rows = op[Slot::x].elements / cols,
          .cols = cols,
          .workspace = workspace(op),
          .cut = op.cut};
}

template <>
inline ScaleColumnsBackward bind<ScaleColumnsBackward>(const OpView& op) {
  const int64_t cols = op[Slot::norm].elements;
  return {.d_out = floats(op, Slot::d_out),
          .x = in(op, Slot::x),
          .magnitude = floats(op, Slot::magnitude),
          .norm = floats(op, Slot::norm),
          .d_x = floats(op, op.has(Slot::d_x) ? Slot::d_x : Slot::d_out),
          .d_magnitude = floats(op, Slot::d_magnitude),
          .rows = op[Slot::x].elements / cols,
          .cols = cols,
          .workspace = workspace(op),
          .cut = op.cut};
}

}  // namespace snug::kernels
