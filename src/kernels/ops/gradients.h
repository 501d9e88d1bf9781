#pragma once

#include "kernels/binding.h"

namespace snug::kernels {

// data[0, elements) = 0.
struct Zero {
  float* data = nullptr;
  int64_t elements = 0;
  Cut cut;
};

// scalars[square_sum] += sum of squares, in blocks of fixed size summed in order in fp64.
// workspace: one double for each block of kSquareSumBlock elements.
struct SquareSum {
  const float* data = nullptr;
  int64_t elements = 0;
  Scalars* scalars = nullptr;
  Workspace workspace;
  Cut cut;
};

// gradient_norm = sqrt(square_sum) / loss_scale; clip_factor as torch.nn.utils.clip_grad_norm_ (max_norm <= 0: 1), over
// loss_scale; skip = norm not finite.
struct ClipFactor {
  Scalars* scalars = nullptr;
  float max_norm = 0;
};

// loss_scale of the next step as torch.amp.GradScaler has it: half as large after a step that was skipped, twice as large
// after `window` steps in a row that were not. Counts both.
struct UpdateScale {
  Scalars* scalars = nullptr;
  int64_t window = 1;
};

template <>
inline Zero bind<Zero>(const OpView& op) {
  return {.data = floats(op, Slot::gradient), .elements = op[Slot::gradient].elements, .cut = op.cut};
}

template <>
inline SquareSum bind<SquareSum>(const OpView& op) {
  return {.data = floats(op, Slot::gradient),
          .elements = op[Slot::gradient].elements,
          .scalars = scalars(op),
          .workspace = workspace(op),
          .cut = op.cut};
}

template <>
inline ClipFactor bind<ClipFactor>(const OpView& op) {
  return {.scalars = scalars(op), .max_norm = static_cast<float>(op.attributes.max_norm)};
}

template <>
inline UpdateScale bind<UpdateScale>(const OpView& op) {
  return {.scalars = scalars(op), .window = op.attributes.scale_window};
}

}  // namespace snug::kernels
