#pragma once
// Builds the forward Program of a decoder: embedding, L folded blocks, final norm, head with loss; or, from the same blocks,
// the Program that generates. It knows the ModelSpec and the shapes; adapters, gradients, checkpointing and the optimizer
// are added by passes.

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

struct GenerationShape {
  int64_t capacity = 1;        // tokens of a sequence, prompt and answer
  std::vector<int64_t> steps;  // how many new tokens a forward may take, descending; the last is 1
};

// Regions: for each number of rows a step (new tokens -> keys and values in the caches, the last one's hidden state), then
// "head" (its logits). No row is padding: a step that is not filled by new tokens takes some again. All weights are frozen
// and unplaced.
Program build_generation(const ModelSpec& spec, const Precision& precision, const GenerationShape& shape);

}  // namespace snug
