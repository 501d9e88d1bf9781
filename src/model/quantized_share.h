#pragma once
// What transformers quantizes when it loads a model with bitsandbytes, and what it leaves: it replaces linear layers. What
// is no linear layer stays as it is: embeddings, norms, and experts where all of them are one tensor.

#include "model/model_spec.h"

namespace snug {

struct QuantizedShare {
  int64_t parameters = 0, left = 0;  // of the model; of these stay as they are
  int64_t left_experts = 0;          // of those are experts'

  double left_share() const { return parameters > 0 ? static_cast<double>(left) / static_cast<double>(parameters) : 0; }
};

// `fused_experts`: transformers 5, where a layer's experts are one tensor; before, most families had a layer for each.
QuantizedShare quantized_share(const ModelSpec& spec, bool fused_experts);

}  // namespace snug
