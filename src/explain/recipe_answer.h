#pragma once
// What to change in the recipe of a run that ran out: the advice on its plan, as a change of the user's own file where that
// is another trainer's.

#include <optional>
#include <string>
#include <vector>

#include "explain/recipe_advice.h"
#include "recipe/dialects/changes.h"
#include "torch/stage.h"

namespace snug {

struct RecipeInQuestion {
  const Recipe& recipe;
  const std::optional<ForeignRecipe>& foreign;  // another trainer's
  std::string file;                             // its name; empty: no file
  PyTorchEngine* pytorch = nullptr;             // null: snug's plan tells
};

struct RecipeAnswer {
  std::string dialect;  // "axolotl", "snug"
  std::string model, device;
  std::string engine;  // whose plans the advice is made of: "axolotl on PyTorch", "snug"
  RecipeAdvice advice;
  std::vector<Setting> settings;     // of the set, in our keys
  std::optional<RecipePatch> patch;  // none: our own file, or nothing to change
  std::string outside;               // not empty: it ran out beside the training step, which no change of its plan mends
};

// Whether memory that runs out at this stage is that of a training step, or of what stays between steps.
bool is_of_training(TorchStage stage);

// `capacity_bytes`: what the device had for the run. Throws Error for a model that is not known and a file that cannot be
// read.
RecipeAnswer answer_for_recipe(const RecipeInQuestion& asked, const Target& target, int64_t capacity_bytes,
                               int64_t missing_bytes, TorchStage stage);

}  // namespace snug
