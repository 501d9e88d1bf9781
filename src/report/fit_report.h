#pragma once
// What `snug fit` found, for people, for scripts and as a file that `snug train` runs.

#include <optional>
#include <string>

#include "advise/recommend.h"
#include "recipe/dialects/changes.h"
#include "report/pytorch_report.h"
#include "report/text_style.h"

namespace snug {

std::string fit_text(const FitAnswer& answer, const TextStyle& style);
// `undecided`: PyTorch's answer where the question was PyTorch's and snug's engine was searched all the same; it says why.
std::string fit_json(const FitAnswer& answer, const std::optional<PyTorchAnswer>& undecided = std::nullopt);
// The same of snug's search (none: it has no step of the model), where the question was PyTorch's: "fits" and "diff" are
// those of `pytorch`, whose search stands under "pytorch" with the figures of its best recipe, or of the one that needs
// least.
std::string fit_json(const std::optional<FitAnswer>& of_snug, const FitAnswer& pytorch, const PyTorchAnswer& figures);

// The best recipe as a diff of the user's own file, and what that file has no word for.
std::string patch_text(const RecipePatch& patch, Dialect dialect);

// The keys of the best recipe that differ from their defaults.
std::string fit_recipe_yaml(const FitAnswer& answer);
std::string fit_recipe_yaml(const Recipe& recipe, const Target& target, int64_t budget_bytes);

}  // namespace snug
