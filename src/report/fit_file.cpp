// The recipe that `snug fit` chose, as a file of ours or as a change of the user's own. Apart from the rest of the report,
// because it alone writes YAML.

#include <fmt/format.h>

#include "recipe/bytes.h"
#include "recipe/yaml.h"
#include "report/fit_report.h"

namespace snug {

std::string patch_text(const RecipePatch& patch, Dialect dialect) {
  std::string text;
  for (const RecipeChange& change : patch.unsaid)
    text += fmt::format("{} has no word for {}: {}\n", name_of(dialect), change.key, change.value);
  return text + (patch.diff.empty() ? "the file stays as it is\n" : patch.diff);
}

std::string fit_recipe_yaml(const FitAnswer& answer) {
  return fit_recipe_yaml(answer.report().front.front().recipe, answer.target, answer.budget_bytes);
}

std::string fit_recipe_yaml(const Recipe& recipe, const Target& target, int64_t budget_bytes) {
  const std::string all = write_recipe_yaml(recipe), usual = write_recipe_yaml({});
  std::string text = fmt::format("# chosen by snug fit for {} of {}\n", format_bytes(budget_bytes), target.name);
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = all.find('\n', begin) + 1;
    const std::string line = all.substr(begin, end - begin);
    if (usual.find("\n" + line) == std::string::npos && !usual.starts_with(line)) text += line;
    begin = end;
  }
  return text;
}

}  // namespace snug
