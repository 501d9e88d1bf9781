#pragma once
// What to change in the recipe of a run that ran out: `snug explain FILE RECIPE`, in the recipe's own key names.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "explain/recipe_advice.h"
#include "recipe/dialects/changes.h"

namespace snug::cli {

struct RecipeAnswer {
  std::string dialect;  // "axolotl", "snug"
  std::string model, device;
  RecipeAdvice advice;
  std::vector<Setting> settings;     // of the set, in our keys
  std::optional<RecipePatch> patch;  // none: our own file, or nothing to change
};

// `words`: a recipe, and flags as `snug plan` takes them; --gpu NAME says which device it was. `capacity_bytes`: what the
// message says the device has, less what others hold. Throws UsageError if neither tells.
RecipeAnswer answer_for_recipe(std::span<char* const> words, std::optional<int64_t> capacity_bytes, int64_t missing_bytes);

std::string recipe_text(const RecipeAnswer& answer);
nlohmann::ordered_json recipe_json(const RecipeAnswer& answer);

}  // namespace snug::cli
