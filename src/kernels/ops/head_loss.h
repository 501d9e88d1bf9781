#pragma once

#include "kernels/binding.h"

namespace snug::kernels {

// Output head and cross entropy in one op; the logits exist for cut.rows targets at a time, in panels of cut.cols vocabulary
// entries. For each of the first scalars[target_count] target rows i:  logits = hidden[i] weight^T + low[i] low_weight^T,
// loss = lse(logits) - logits[target]. scalars[loss_sum] += loss_scale-free sum * scalars[inverse_labels].
// Training (d_hidden not null): d_logits = (softmax - onehot) * inverse_labels * loss_scale; d_hidden is written for every
// row (zero where nothing is predicted); d_weight, d_low_weight are added to (null where frozen); d_low is written like
// d_hidden. Evaluation: predictions[j] = argmax of target j's logits, where predictions is not null.
struct HeadLoss {
  In hidden;                               // [M, C]
  In weight;                               // [V, C]
  In low, low_weight;                      // LoRA on the head: [M, R], [V, R]; null without
  const int32_t* target_rows = nullptr;    // [M], ascending
  const int32_t* target_tokens = nullptr;  // [M]
  Scalars* scalars = nullptr;
  float* d_hidden = nullptr;       // [M, C]
  float* d_weight = nullptr;       // [V, C]
  float* d_low = nullptr;          // [M, R]
  float* d_low_weight = nullptr;   // [V, R]
  int32_t* predictions = nullptr;  // [M]
  int64_t rows = 0, cols = 0, vocabulary = 0, rank = 0;
  float softcap = 0;  // logits become softcap * tanh(logits / softcap); 0: they stay
  Workspace workspace;
  Cut cut;
};

template <>
inline HeadLoss bind<HeadLoss>(const OpView& op) {
  const OperandView& weight = op[Slot::weight];
  return {.hidden = in(op, Slot::hidden),
          .weight = in(op, Slot::weight),
          .low = in(op, Slot::low),
          .low_weight = in(op, Slot::low_weight),
          .target_rows = ints(op, Slot::target_rows),
          .target_tokens = ints(op, Slot::target_tokens),
          .scalars = scalars(op),
          .d_hidden = floats(op, Slot::d_hidden),
          .d_weight = floats(op, Slot::d_weight),
          .d_low = floats(op, Slot::d_low),
          .d_low_weight = floats(op, Slot::d_low_weight),
          .predictions = pointer<int32_t>(op, Slot::predictions),
          .rows = op[Slot::hidden].elements / weight.dim(1),
          .cols = weight.dim(1),
          .vocabulary = weight.dim(0),
          .rank = op.has(Slot::low_weight) ? op[Slot::low_weight].last_dim() : 0,
          .softcap = static_cast<float>(op.attributes.softcap),
          .workspace = workspace(op),
          .cut = op.cut};
}

}  // namespace snug::kernels
