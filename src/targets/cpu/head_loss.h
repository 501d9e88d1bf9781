#pragma once
// How the output head and its loss are cut, and what that takes.

#include "base/arithmetic.h"
#include "base/dtype.h"
#include "targets/cpu/blocks.h"

namespace snug {

// ---- head_loss: rows a chunk, vocabulary entries a panel; then bytes = [hidden chunk] [low chunk] [d_hidden chunk] [d_low
// chunk] [row statistics] [panel: weights copied, or d_logits transposed] [logits of all panels where they are kept,
// or of one] [scratchpad].
struct HeadShape {
  int64_t rows = 0, cols = 0, vocabulary = 0, rank = 0;  // M, C, V, R (0: no LoRA on the head)
  DType hidden = DType::f32, weight = DType::f32, low = DType::f32, low_weight = DType::f32;
  bool training = true;         // d_hidden (and d_low) wanted
  bool weight_trained = false;  // d_weight wanted
  bool low_trained = false;
  Arithmetic arithmetic = Arithmetic::fp32;

  // From the walk that sums each row's softmax to the one that sums gradients of weights, if there is any.
  bool keeps_logits() const { return training && (weight_trained || low_trained) && arithmetic == Arithmetic::fp32; }
};
Blocks head_loss_blocks(const HeadShape& shape, int32_t threads);
int64_t head_loss_workspace_bytes(const HeadShape& shape, int32_t threads);
// The same for other blocks than those above.
int64_t head_loss_workspace_bytes(const HeadShape& shape, const Blocks& blocks, int32_t threads);

}  // namespace snug
