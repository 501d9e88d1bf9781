#include "cli/explain_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "base/error.h"
#include "cli/arguments.h"
#include "cli/explain_parts.h"
#include "cli/plan_text.h"
#include "cli/target_flags.h"
#include "cli/terminal.h"
#include "cli/units.h"
#include "model/catalogue.h"
#include "plan/accelerator_target.h"
#include "recipe/bytes.h"
#include "recipe/yaml.h"

namespace snug::cli {

namespace {

using Json = nlohmann::ordered_json;

// The card of the catalogue whose memory is nearest: its rates rank changes by time.
Target device_of(int64_t capacity_bytes) {
  const std::vector<Accelerator>& all = accelerators();
  const auto distance = [&](const Accelerator& card) {
    return card.compute_capability == 0 ? INT64_MAX : std::abs(card.usable_bytes - capacity_bytes);
  };
  Target target = target_of(*std::ranges::min_element(all, {}, distance));
  target.memory_bytes = capacity_bytes;
  return target;
}

Target target_of_run(const Arguments& arguments, std::optional<int64_t> capacity_bytes) {
  if (arguments.has("gpu")) return target_for(arguments);
  if (arguments.recipe.memory_bytes > 0) return device_of(arguments.recipe.memory_bytes);
  if (!capacity_bytes) throw UsageError("which GPU was it? snug explain FILE RECIPE --gpu NAME, or --memory SIZE");
  return device_of(*capacity_bytes);
}

std::string verdict(const RecipeAnswer& a) {
  const RecipeAdvice& r = a.advice;
  const std::string begin = a.outside.empty() ? "" : a.outside + ". ";
  if (!r.must_change())
    return begin + fmt::format("as snug plans it, {} needs {} of {}: snug train runs it there",
                               begin.empty() ? "this recipe" : "training", format_bytes(r.plan_bytes), a.device);
  const std::string what = r.enough ? "the smallest set that is enough" : "not even all together are enough; they come to";
  return begin +
         fmt::format(
             "as snug plans it, this recipe needs {}; in proportion to what was missing it should need at most {}; {}: {}",
             format_bytes(r.plan_bytes), format_bytes(r.budget_bytes), what, format_bytes(r.set->peak_bytes));
}

// The set as a diff of the user's own file, or as keys of ours.
std::string change_text_of(const RecipeAnswer& a) {
  if (!a.advice.set) return "";
  std::string text;
  if (!a.patch) {
    for (const Setting& setting : a.settings) text += fmt::format("  {}: {}\n", setting.key, setting.value);
    return "\n" + text;
  }
  for (const RecipeChange& change : a.patch->unsaid)
    text += paragraph(fmt::format("{} has no word for {}: {}", a.dialect, change.key, change.value), 2);
  return text + "\n" + a.patch->diff;
}

std::string_view evaluation_batch_key(Dialect dialect) {
  if (dialect == Dialect::axolotl) return "eval_batch_size";
  return dialect == Dialect::torchtune ? "batch_size_val" : "per_device_eval_batch_size";
}

// What the recipe says of a pass over the evaluation rows, where it says it.
std::string logits_text(const ForeignRecipe& foreign, const ModelSpec& model) {
  const int64_t length = foreign.eval_length > 0 ? foreign.eval_length : foreign.recipe.seq_len;
  if (foreign.eval_batch <= 1 || length <= 0) return "";
  const int64_t row = checked_mul(checked_mul(length, model.vocab_size), 4);
  return fmt::format("; {} sequences of {} tokens are evaluated at once, whose logits in fp32 are {}: {}: 1 leaves {}",
                     foreign.eval_batch, length, format_bytes(checked_mul(row, foreign.eval_batch)),
                     evaluation_batch_key(foreign.dialect), format_bytes(row));
}

std::string outside_text(TorchStage stage, const Arguments& arguments, const ModelSpec& model) {
  if (is_of_training(stage)) return "";
  std::string text =
      fmt::format("memory ran out in {}, beside the training step that a recipe's plan tells of", name_of(stage));
  if (stage == TorchStage::evaluation && arguments.foreign) text += logits_text(*arguments.foreign, model);
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

RecipeAnswer answer_for_recipe(std::span<char* const> words, std::optional<int64_t> capacity_bytes, int64_t missing_bytes,
                               TorchStage stage) {
  const Arguments arguments = parse_arguments(words, {"gpu="});
  if (arguments.recipe.model.empty()) throw UsageError("the recipe names no model: give it beside the file");
  const Target target = target_of_run(arguments, capacity_bytes);
  RecipeAnswer answer{.dialect = arguments.foreign ? std::string(name_of(arguments.foreign->dialect)) : "snug",
                      .model = arguments.recipe.model,
                      .device = target.name,
                      .advice = {},
                      .settings = {},
                      .patch = {},
                      .outside = {}};
  Recipe recipe = arguments.recipe;
  const ModelSpec model = resolve_model(recipe.model);
  const int64_t capacity = capacity_bytes && !arguments.has("gpu") ? *capacity_bytes : target.memory_bytes;
  answer.outside = outside_text(stage, arguments, model);
  answer.advice = advise_on(model, recipe, target, capacity, answer.outside.empty() ? missing_bytes : 0);
  if (!answer.advice.set) return answer;
  Recipe changed = answer.advice.set->recipe;
  changed.memory_bytes = recipe.memory_bytes;
  answer.settings = differences(recipe, changed);
  const std::string& file = arguments.recipe_file;
  if (!arguments.foreign || file.empty()) return answer;
  std::vector<RecipeChange> changes;
  for (const Setting& setting : answer.settings) changes.push_back({setting.key, setting.value});
  answer.patch = change_foreign_recipe(read_recipe_text(file), file, changes);
  return answer;
}

std::string recipe_text(const RecipeAnswer& a) {
  constexpr int kWidth = 80;
  std::string text = fmt::format("\nin this recipe ({}, {})\n", a.dialect, a.model) + paragraph(verdict(a), 2);
  if (a.advice.set)
    for (const Alternative& change : a.advice.set->changes) text += fmt::format("  - {}\n", wrapped(change.note, kWidth, 4));
  text += change_text_of(a);
  return text + levers_text(a.advice.levers, {.width = kWidth});
}

Json recipe_json(const RecipeAnswer& a) {
  Json levers = Json::array(), settings = Json::object();
  for (const Lever& lever : a.advice.levers) {
    Json of = Json::object();
    for (const Setting& setting : lever.change.settings) of[setting.key] = setting.value;
    levers.push_back({{"settings", of},
                      {"saved_bytes", lever.saved_bytes},
                      {"slowdown", lever.slowdown},
                      {"effect", name_of(lever.change.effect)}});
  }
  for (const Setting& setting : a.settings) settings[setting.key] = setting.value;
  return {{"dialect", a.dialect},
          {"model", a.model},
          {"device", a.device},
          {"outside_training", a.outside.empty() ? Json() : Json(a.outside)},
          {"plan_bytes", a.advice.plan_bytes},
          {"budget_bytes", a.advice.budget_bytes},
          {"levers", levers},
          {"enough", a.advice.set ? Json(a.advice.enough) : Json()},
          {"settings", settings},
          {"peak_bytes", a.advice.set ? Json(a.advice.set->peak_bytes) : Json()},
          {"diff", a.patch ? Json(a.patch->diff) : Json()}};
}

}  // namespace snug::cli
