#pragma once
// Builds the forward Program of a decoder: embedding, L folded blocks, final norm, head with loss. It knows the ModelSpec
// and the batch's shape; adapters, gradients, checkpointing and the optimizer are added by passes.

#include "model/model_spec.h"
#include "program/program.h"
#include "recipe/recipe.h"

namespace snug {

struct BatchShape {
  int64_t batch = 1;          // B, sequences
  int64_t seq_len = 1;        // T, tokens
  int64_t micro_batches = 1;  // of one optimizer step
};

// Regions: "root" holds "load", "step" > "micro_batch" x k > "forward", later "backward"; "optimizer" and "save" are added
// by passes. All weights are frozen and unplaced.
Program build_forward(const ModelSpec& spec, const Precision& precision, const BatchShape& shape);

}  // namespace snug
