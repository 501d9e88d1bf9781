#include "explain/recipe_answer.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "model/catalogue.h"
#include "recipe/bytes.h"
#include "recipe/yaml.h"

namespace snug {

namespace {

// What the recipe says of a pass over the evaluation rows, where it says it.
std::string logits_text(const ForeignRecipe& foreign, const ModelSpec& model) {
  const int64_t length = foreign.eval_length > 0 ? foreign.eval_length : foreign.recipe.seq_len;
  if (foreign.eval_batch <= 1 || length <= 0) return "";
  const int64_t row = checked_mul(checked_mul(length, model.vocab_size), 4);
  return fmt::format("; {} sequences of {} tokens are evaluated at once, whose logits in fp32 are {}: {}: 1 leaves {}",
                     foreign.eval_batch, length, format_bytes(checked_mul(row, foreign.eval_batch)),
                     evaluation_batch_key(foreign.dialect), format_bytes(row));
}

std::string outside_text(TorchStage stage, const std::optional<ForeignRecipe>& foreign, const ModelSpec& model) {
  if (is_of_training(stage)) return "";
  std::string text =
      fmt::format("memory ran out in {}, beside the training step that a recipe's plan tells of", name_of(stage));
  if (stage == TorchStage::evaluation && foreign) text += logits_text(*foreign, model);
  return text;
}

}  // namespace

bool is_of_training(TorchStage stage) {
  switch (stage) {
    case TorchStage::evaluation:
    case TorchStage::generate:
    case TorchStage::save:
    case TorchStage::data:
    case TorchStage::capture: return false;
    default: return true;
  }
}

RecipeAnswer answer_for_recipe(const RecipeInQuestion& asked, const Target& target, int64_t capacity_bytes,
                               int64_t missing_bytes, TorchStage stage) {
  const Recipe& recipe = asked.recipe;
  RecipeAnswer answer{.dialect = asked.foreign ? std::string(name_of(asked.foreign->dialect)) : "snug",
                      .model = recipe.model,
                      .device = target.name,
                      .engine = asked.pytorch != nullptr ? asked.pytorch->side().trainer : "snug",
                      .advice = {},
                      .settings = {},
                      .patch = {},
                      .outside = {}};
  const ModelSpec model = resolve_model(recipe.model);
  answer.outside = outside_text(stage, asked.foreign, model);
  answer.advice =
      advise_on(model, recipe, target, capacity_bytes, answer.outside.empty() ? missing_bytes : 0, asked.pytorch);
  if (!answer.advice.set) return answer;
  Recipe changed = answer.advice.set->recipe;
  changed.memory_bytes = recipe.memory_bytes;
  answer.settings = differences(recipe, changed);
  if (!asked.foreign || asked.file.empty()) return answer;
  std::vector<RecipeChange> changes;
  for (const Setting& setting : answer.settings) changes.push_back({setting.key, setting.value});
  answer.patch = change_foreign_recipe(read_recipe_text(asked.file), asked.file, changes);
  return answer;
}

}  // namespace snug
