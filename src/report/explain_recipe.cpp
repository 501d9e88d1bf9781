#include "report/explain_recipe.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "recipe/bytes.h"
#include "report/explain_parts.h"
#include "report/plan_text.h"
#include "report/units.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

std::string pytorch_verdict_of(const RecipeAnswer& a) {
  const RecipeAdvice& r = a.advice;
  const std::string begin = a.outside.empty() ? "" : a.outside + ". ", needs = format_bytes(r.plan_bytes);
  if (!r.must_change())
    return begin + fmt::format("as {} is modelled, {} needs {} of {} with CUDA's context: it should fit", a.engine,
                               begin.empty() ? "this recipe" : "training", needs, a.device);
  const std::string what = r.enough ? "the smallest set that is enough" : "not even all together are enough; they come to";
  return begin + fmt::format(
                     "as {} is modelled, this recipe needs {} with CUDA's context; to be safe after this failure, with a "
                     "twentieth of the device to spare, it should need at most {}; {}: {}",
                     a.engine, needs, format_bytes(r.budget_bytes), what, format_bytes(r.set->peak_bytes));
}

std::string verdict(const RecipeAnswer& a) {
  if (a.advice.of_pytorch) return pytorch_verdict_of(a);
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

}  // namespace

std::string recipe_text(const RecipeAnswer& a) {
  constexpr int kWidth = 80;
  std::string text = fmt::format("\nin this recipe ({}, {})\n", a.dialect, a.model) + paragraph(verdict(a), 2);
  if (a.advice.set)
    for (const Alternative& change : a.advice.set->changes) text += fmt::format("  - {}\n", wrapped(change.note, kWidth, 4));
  text += change_text_of(a);
  return text + levers_text(a.advice.levers, {.width = kWidth}, a.advice.of_pytorch ? a.engine : "snug's plan");
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
          {"engine", a.advice.of_pytorch ? "pytorch" : "snug"},
          {"outside_training", a.outside.empty() ? Json() : Json(a.outside)},
          {"plan_bytes", a.advice.plan_bytes},
          {"budget_bytes", a.advice.budget_bytes},
          {"levers", levers},
          {"enough", a.advice.set ? Json(a.advice.enough) : Json()},
          {"settings", settings},
          {"peak_bytes", a.advice.set ? Json(a.advice.set->peak_bytes) : Json()},
          {"diff", a.patch ? Json(a.patch->diff) : Json()}};
}

}  // namespace snug
