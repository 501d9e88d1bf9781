#pragma once

#include "kernels/binding.h"

namespace snug::kernels {

// out[i, :] = scale * table[ids[i], :].
struct Embedding {
  In table;                      // [V, C]
  const int32_t* ids = nullptr;  // [M]
  Out out;                       // [M, C]
  int64_t rows = 0, cols = 0, vocabulary = 0;
  float scale = 1.0F;
  Cut cut;
};

// d_table[ids[i], :] += scale * d_out[i, :], summed in the order of i; rows of `untrained_row` are passed over.
struct EmbeddingBackward {
  const float* d_out = nullptr;  // [M, C]
  const int32_t* ids = nullptr;  // [M]
  float* d_table = nullptr;      // [V, C]
  int64_t rows = 0, cols = 0, vocabulary = 0;
  float scale = 1.0F;
  int64_t untrained_row = -1;  // none
  Cut cut;
};

template <>
inline Embedding bind<Embedding>(const OpView& op) {
  const int64_t cols = op[Slot::weight].dim(1);
  return {.table = in(op, Slot::weight),
          .ids = ints(op, Slot::ids),
          .out = out(op, Slot::out),
          .rows = op[Slot::ids].elements,
          .cols = cols,
          .vocabulary = op[Slot::weight].dim(0),
          .scale = static_cast<float>(op.attributes.scale),
          .cut = op.cut};
}

template <>
inline EmbeddingBackward bind<EmbeddingBackward>(const OpView& op) {
  const int64_t cols = op[Slot::d_table].dim(1);
  return {.d_out = floats(op, Slot::d_out),
          .ids = ints(op, Slot::ids),
          .d_table = floats(op, Slot::d_table),
          .rows = op[Slot::ids].elements,
          .cols = cols,
          .vocabulary = op[Slot::d_table].dim(0),
          .scale = static_cast<float>(op.attributes.scale),
          .untrained_row = op.attributes.untrained_row,
          .cut = op.cut};
}

}  // namespace snug::kernels
