#pragma once
// From an Op of the Program to a call of its kernel: operands become pointers, extents become shapes. The only place that
// knows both sides.

#include <cstddef>

#include "plan/layout.h"
#include "program/program.h"

namespace snug {

// Where tensors lie: a Program, its Layout, the arena, and the layer and chunk whose turn it is.
struct Binding {
  const Program& program;
  const Layout& layout;
  std::byte* base = nullptr;  // null: addresses are null (for prepare)
  int64_t layer = 0;
  int64_t chunk = 0;

  // The address of a tensor's view, null for kNone and in the far home.
  void* address(TensorId id) const;
  // Bytes from the start of its home.
  int64_t offset(TensorId id) const;
  // Bytes, and elements, before the view in its storage.
  int64_t first_byte(TensorId id) const;
  int64_t first_element(TensorId id) const;
};

// Runs one op of the compute lane.
void dispatch(const Op& op, const Binding& binding);

// Lets the backend create what the op will need, so that dispatch allocates nothing.
void prepare(const Op& op, const Binding& binding);

}  // namespace snug
