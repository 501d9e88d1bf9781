#pragma once
// The few numbers that change from step to step. They live in one small tensor of fp64, never in launch arguments, so that a
// captured step can be replayed. Programs name them in ragged extents and skips; kernels read and write them.

#include <cstdint>

namespace snug {

enum class Scalar : int32_t {
  learning_rate,
  step,               // 1-based optimizer step; those that were skipped do not count
  loss_scale,         // of the loss's gradient, so of all of them; 1 but in fp16
  inverse_labels,     // 1 / labels of the accumulation window
  target_count,       // valid entries of target_rows in this micro-batch
  loss_sum,           // summed over the window, already times inverse_labels
  square_sum,         // of all gradients of the window
  gradient_norm,      // without loss_scale
  clip_factor,        // what gradients are multiplied by: min(1, max_norm / (norm + 1e-6)) / loss_scale
  skip,               // nonzero: the optimizer region is passed over
  first_micro_batch,  // nonzero in the first micro-batch of a window
  steps_at_scale,     // since loss_scale changed
  skips_in_a_row,
  micro_batch,  // its ordinal in the window, from 0
  count
};
constexpr int64_t kScalarCount = 16;  // room for more

// Elements that square_sum adds up apart, whatever the number of threads.
constexpr int64_t kSquareSumBlock = 16384;

// Elements of an optimizer's 8-bit state that share a scale.
constexpr int64_t kStateBlock = 256;

// Scales of 4-bit blocks that share a scale where they are quantized themselves.
constexpr int64_t kNestedBlock = 256;

// Numbers of a row that DoRA's norms are summed over at a time, and rows of a weight that lies the other way round.
constexpr int64_t kDoraPanel = 1024;
constexpr int64_t kDoraColumns = 256;

// Rows that a thread multiplies at a time in a head_loss in bf16.
constexpr int64_t kHeadRowBlock = 64;

}  // namespace snug
