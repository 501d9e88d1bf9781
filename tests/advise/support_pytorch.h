#pragma once
// PyTorch's side of searches in tests: a recipe as Hugging Face's Trainer would run it, on a made-up card.

#include "advise/pytorch_engine.h"
#include "eager/from_recipe.h"

namespace snug::testing {

// A card with so much memory, bytes, on today's stack. `model` must outlive it.
inline PyTorchSide pytorch_side_with(int64_t memory_bytes, const ModelSpec& model) {
  PyTorchSide side{.stack = eager::stack_profile(), .card = {}, .setup = {}};
  side.card.memory_bytes = memory_bytes;
  side.setup = [&model, stack = side.stack](const Recipe& recipe) { return eager::setup_of(recipe, model, stack); };
  return side;
}

}  // namespace snug::testing
