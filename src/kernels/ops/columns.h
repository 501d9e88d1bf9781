#pragma once

#include "kernels/binding.h"

namespace snug::kernels {

// whole = [M, N] and its column blocks, side by side; all of one dtype. split copies out of the whole, join into it.
struct ColumnParts {
  struct Part {
    void* data = nullptr;  // [M, cols]
    int64_t cols = 0;      // 0: none
  };
  void* whole = nullptr;
  Part parts[3];
  DType dtype = DType::f32;
  int64_t rows = 0;
  Cut cut;
};

template <>
inline ColumnParts bind<ColumnParts>(const OpView& op) {
  ColumnParts columns{.whole = pointer<void>(op, Slot::x), .dtype = op[Slot::x].dtype, .cut = op.cut};
  const int64_t width = op[Slot::x].last_dim();
  columns.rows = op[Slot::x].elements / width;
  size_t next = 0;
  for (Slot slot : {Slot::a, Slot::b, Slot::c})
    if (op.has(slot)) columns.parts[next++] = {pointer<void>(op, slot), op[slot].elements / columns.rows};
  return columns;
}

}  // namespace snug::kernels
