#pragma once

#include "kernels/binding.h"

namespace snug::kernels {

// cosine, sine [M, half] of positions[i] * inverse_frequency[j], times scale (YaRN's attention factor).
struct RopeTable {
  const int32_t* positions = nullptr;        // [M]
  const float* inverse_frequency = nullptr;  // [half]
  float* cosine = nullptr;                   // [M, half]
  float* sine = nullptr;                     // [M, half]
  int64_t rows = 0, half = 0;
  float scale = 1.0F;
  Cut cut;
};

// Rotates the first 2 * half numbers of each head in place, halves split ("rotate_half"): (x1, x2) -> (x1 cos - x2 sin, x2
// cos + x1 sin); `inverse` turns it back (which is also its gradient).
struct Rope {
  Out x;                          // [M, heads, D]
  const float* cosine = nullptr;  // [M, half], half <= D/2
  const float* sine = nullptr;
  int64_t rows = 0, heads = 0, head_size = 0, half = 0;
  bool inverse = false;
  Cut cut;
};

template <>
inline RopeTable bind<RopeTable>(const OpView& op) {
  return {.positions = ints(op, Slot::positions),
          .inverse_frequency = floats(op, Slot::inverse_frequency),
          .cosine = floats(op, Slot::cosine),
          .sine = floats(op, Slot::sine),
          .rows = op[Slot::positions].elements,
          .half = op[Slot::inverse_frequency].elements,
          .scale = static_cast<float>(op.attributes.scale),
          .cut = op.cut};
}

template <>
inline Rope bind<Rope>(const OpView& op) {
  const OperandView& x = op[Slot::x];
  const bool local = op.has(Slot::local_cosine) && op.is_local;
  return {.x = out(op, Slot::x),
          .cosine = floats(op, local ? Slot::local_cosine : Slot::cosine),
          .sine = floats(op, local ? Slot::local_sine : Slot::sine),
          .rows = x.dim(0) * x.dim(1),
          .heads = x.dim(2),
          .head_size = x.dim(3),
          .half = op[Slot::cosine].last_dim(),
          .inverse = op.attributes.inverse,
          .cut = op.cut};
}

template <>
inline const char* missing<Rope>(const OpView& op) {
  return op.attributes.first_column != 0 ? "heads that rotate from their middle on" : nullptr;
}

}  // namespace snug::kernels
