#pragma once
// What a device was filled with when memory was short on it, in words that a reader can act on.

#include <cstdint>
#include <string_view>

#include "explain/stack_reading.h"

namespace snug {

// What filled the memory, where it was short.
enum class Filler : uint8_t {
  none,
  weights,
  second_model,  // two sets of weights, or one copied while it was loaded
  activations,
  logits,
  attention,  // its scores, length x length
  gradients,
  optimizer_states,
  optimizer_temporaries,
  buckets,
  gathered,
  long_batch,
  growing_lengths,
  kept_graphs,
  kept_tensors,
  kept_evaluation,
  kv_cache,
  saving
};
std::string_view name_of(Filler filler);

// What the frames of a failed request alone tell; none where they do not. A device that is full of one thing may fail at
// another, so this is for messages, which tell nothing else.
Filler filler_of(Part part, TorchStage stage);

}  // namespace snug
