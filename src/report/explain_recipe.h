#pragma once
// What to change in the recipe of a run that ran out, in the recipe's own key names, for people and for scripts.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "explain/recipe_answer.h"

namespace snug {

std::string recipe_text(const RecipeAnswer& answer);
nlohmann::ordered_json recipe_json(const RecipeAnswer& answer);

}  // namespace snug
