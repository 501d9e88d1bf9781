#pragma once
// What to change in the recipe of a run that ran out: `snug explain FILE RECIPE`, in the recipe's own key names.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "explain/recipe_advice.h"
#include "recipe/dialects/changes.h"
#include "torch/stage.h"

namespace snug::cli {

struct RecipeAnswer {
  std::string dialect;  // "axolotl", "snug"
  std::string model, device;
  RecipeAdvice advice;
  std::vector<Setting> settings;     // of the set, in our keys
  std::optional<RecipePatch> patch;  // none: our own file, or nothing to change
  std::string outside;               // not empty: it ran out beside the training step, which no change of its plan mends
};

// Whether memory that runs out at this stage is that of a training step, or of what stays between steps.
bool is_of_training(TorchStage stage);

// `words`: a recipe, and flags as `snug plan` takes them; --gpu NAME says which device it was. `capacity_bytes`: what the
// message says the device has, less what others hold. Throws UsageError if neither tells.
RecipeAnswer answer_for_recipe(std::span<char* const> words, std::optional<int64_t> capacity_bytes, int64_t missing_bytes,
                               TorchStage stage);

std::string recipe_text(const RecipeAnswer& answer);
nlohmann::ordered_json recipe_json(const RecipeAnswer& answer);

}  // namespace snug::cli
