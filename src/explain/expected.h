#pragma once
// What a known recipe's step takes by the eager model, stage by stage: from it follows what the rest of a step would have
// taken that no earlier one tells of.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "advise/pytorch_engine.h"
#include "recipe/recipe.h"
#include "torch/stage.h"

namespace snug {

// The most that tensors hold in each stage, in bytes.
struct ExpectedStep {
  int64_t load = 0, forward = 0, backward = 0, optimizer = 0;

  // At most, from the stage to the end of the step; none for what is no part of one.
  std::optional<int64_t> from(TorchStage stage) const;
};

struct Expected {
  std::string engine;         // whose model tells: "axolotl on PyTorch"
  ExpectedStep first, later;  // the first makes gradients and the optimizer's states
  ExpectedStep own_first;     // the first where a loop of the script's own calls the model
};

// None where the eager model does not cover the recipe.
std::optional<Expected> expected_of(PyTorchEngine& engine, const Recipe& recipe);

}  // namespace snug
