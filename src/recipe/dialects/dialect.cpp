#include "recipe/dialects/dialect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "recipe/dialects/hydra_root.h"
#include "recipe/dialects/own_words.h"
#include "recipe/dialects/reading.h"
#include "recipe/dialects/settings_script.h"
#include "recipe/dialects/starting_command.h"

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

namespace {

// Settings without a model, or without a method: with what the script says that reads them; none where no script is found.
std::optional<ForeignRecipe> read_with_script(const dialects::Document& settings, std::optional<Dialect> dialect) {
  if (settings.syntax != dialects::Syntax::yaml && settings.syntax != dialects::Syntax::json) return std::nullopt;
  // Sections like Unsloth's are anybody's where they name no model.
  const bool anybodys = !dialect || *dialect == Dialect::hugging_face || *dialect == Dialect::unsloth;
  std::optional<dialects::Document> named = anybodys ? dialects::by_trainers_names(settings) : std::nullopt;
  if (named) dialect = Dialect::hugging_face;
  if (!named && dialect) named = settings;
  const std::optional<dialects::Document> whole = named ? dialects::with_its_script(*named) : std::nullopt;
  if (!whole) return std::nullopt;
  return read_foreign(*whole, *dialect);
}

}  // namespace

std::optional<ForeignRecipe> read_foreign_recipe(const dialects::Document& document) {
  const std::optional<Dialect> dialect = recognise(document);
  std::optional<ForeignRecipe> recipe = dialect ? read_foreign(document, *dialect) : read_in_own_words(document);
  if (!recipe) return leaves_model_to_others(document) ? read_with_script(document, Dialect::hugging_face) : recipe;
  if (!recipe->models.empty()) {
    const bool trainers = !dialect || *dialect == Dialect::hugging_face || *dialect == Dialect::trl;
    const bool open = dialects::leaves_method_open(document) || dialects::leaves_precision_open(document);
    if (!trainers || !open) return recipe;
    std::optional<ForeignRecipe> whole = read_with_script(document, dialect);
    return whole ? whole : recipe;
  }
  std::optional<dialects::Document> around = dialects::started_by(document);
  if (!around) around = dialects::root_of(document);
  std::optional<ForeignRecipe> whole = around ? read_foreign_recipe(*around) : read_with_script(document, dialect);
  return whole && !whole->models.empty() ? whole : recipe;
}

std::optional<ForeignRecipe> read_foreign_recipe(std::string_view text, const std::string& where) {
  return read_foreign_recipe(dialects::read_document(text, where));
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
