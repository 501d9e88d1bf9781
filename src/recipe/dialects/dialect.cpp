#include "recipe/dialects/dialect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "recipe/dialects/reading.h"

namespace snug {

std::string_view name_of(Dialect dialect) { return dialects::rules_of(dialect).name; }

std::string_view evaluation_batch_key(Dialect dialect) { return dialects::rules_of(dialect).evaluation_batch; }

std::string_view pytorch_trainer(Dialect dialect) { return dialects::rules_of(dialect).pytorch_trainer; }

bool is_trainers_file(std::string_view file) {
  return std::ranges::any_of(dialects::kDialects, [&](Dialect dialect) {
    return std::ranges::any_of(dialects::rules_of(dialect).frames,
                               [&](std::string_view part) { return file.find(part) != std::string_view::npos; });
  });
}

std::vector<std::string> ForeignRecipe::named(KeyFate fate) const {
  std::vector<std::string> names;
  for (const ForeignKey& key : keys)
    if (key.fate == fate) names.push_back(key.name);
  return names;
}

ForeignRecipe read_foreign(const dialects::Document& document, Dialect dialect) {
  try {
    return dialects::Reading(document, dialect).read();
  } catch (const Error& error) {
    throw error.where().empty() ? Error(error.problem(), document.where, error.mend()) : error;
  }
}

std::optional<ForeignRecipe> read_foreign_recipe(std::string_view text, const std::string& where) {
  const dialects::Document document = dialects::read_document(text, where);
  const std::optional<Dialect> dialect = recognise(document);
  return dialect ? read_foreign(document, *dialect) : read_in_own_words(document);
}

std::vector<std::string> ForeignRecipe::refusals(bool has_data) const {
  std::vector<std::string> lines;
  for (const ForeignKey& key : keys) {
    const size_t dot = key.name.find('.');
    const std::string_view name = std::string_view(key.name).substr(dot == std::string::npos ? 0 : dot + 1);
    const bool of_data = key.name.find("dataset") != std::string::npos || name == "max_samples";
    if (key.refusal.empty() || (of_data && has_data)) continue;
    lines.push_back(key.refusal.starts_with(name) || key.refusal.starts_with(key.name)
                        ? key.refusal
                        : fmt::format("{}: {}", key.name, key.refusal));
  }
  return lines;
}

std::string describe(const ForeignRecipe& recipe) {
  const std::vector<std::string> touching = recipe.named(KeyFate::touches_memory);
  std::string line = fmt::format("{} recipe", name_of(recipe.dialect));
  if (!touching.empty()) line += fmt::format("; touch memory and are not planned: {}", fmt::join(touching, ", "));
  const std::vector<std::string> unknown = recipe.named(KeyFate::unknown);
  if (!unknown.empty()) line += fmt::format("; not known: {}", fmt::join(unknown, ", "));
  return line;
}

}  // namespace snug
