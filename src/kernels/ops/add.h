#pragma once

#include "kernels/binding.h"

namespace snug::kernels {

// out = a + b. out may be the same memory as a or b.
struct Add {
  In a, b;
  Out out;
  int64_t elements = 0;
  Cut cut;
};

template <>
inline Add bind<Add>(const OpView& op) {
  return {.a = in(op, Slot::a),
          .b = in(op, Slot::b),
          .out = out(op, Slot::out),
          .elements = op[Slot::out].elements,
          .cut = op.cut};
}

}  // namespace snug::kernels
