#pragma once
// Where the tensors of a Program lie while it runs, and an op with the addresses of its operands. The only place that knows
// both sides.

#include "op/view.h"
#include "plan/layout.h"
#include "program/program.h"
#include "run/homes.h"

namespace snug {

// A Program, its Layout, where its homes begin, and the layer and chunk whose turn it is.
struct Binding {
  const Program& program;
  const Layout& layout;
  Bases bases{};  // null: addresses are null (before anything runs)
  int64_t layer = 0;
  int64_t chunk = 0;
  int64_t rank = 0;  // whose homes these are
  int64_t turn = 0;  // the micro-batch, counted from the step's first

  // The address of a tensor's view, null for kNone, on disk and where it is spread over ranks.
  void* address(TensorId id) const;
  // Bytes from the start of its home.
  int64_t offset(TensorId id) const;
  // Bytes, and elements, before the view in its storage; a window's elements count as in what it shows.
  int64_t first_byte(TensorId id) const;
  int64_t first_element(TensorId id) const;
};

// The op as a backend runs it.
OpView bound_view(const Op& op, const Binding& binding);

}  // namespace snug
