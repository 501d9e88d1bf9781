#include "recipe/strategy_keys.h"

#include <fmt/format.h>

#include <limits>

#include "base/error.h"
#include "recipe/key_makers.h"

namespace snug {

using namespace keys;  // NOLINT(google-build-using-namespace): the table speaks the makers' language

namespace {

[[noreturn]] void refuse_strategies(std::string message, std::string fix) {
  throw Error(std::move(message), "", std::move(fix));
}

Key greater_is_better() {
  return {"greater_is_better",
          {},
          KeyType::boolean,
          "Whether a greater metric_for_best_model is a better one; auto knows.",
          "auto|true|false",
          [](Recipe& recipe, KeyValues values) {
            const std::string& word = single_value("greater_is_better", values);
            recipe.greater_is_better =
                word == kAuto ? std::nullopt : std::optional(parse_boolean("greater_is_better", word));
          },
          [](const Recipe& recipe) {
            return std::string(!recipe.greater_is_better ? kAuto : *recipe.greater_is_better ? "true" : "false");
          }};
}

void validate_best(const Recipe& recipe) {
  if (recipe.save_strategy != recipe.eval_strategy)
    refuse_strategies(
        "load_best_model_at_end needs a checkpoint of what is evaluated, and save_strategy is not eval_strategy",
        "give both the same");
  if (recipe.save_strategy == Strategy::steps && recipe.save_steps % recipe.eval_steps != 0)
    refuse_strategies(
        fmt::format("load_best_model_at_end needs an evaluation of each checkpoint, and save_steps {} is no multiple of "
                    "eval_steps {}",
                    recipe.save_steps, recipe.eval_steps),
        "give save_steps the value of eval_steps");
}

}  // namespace

std::vector<Key> strategy_keys() {
  return {
      choice<Strategy>("save_strategy", {}, "When checkpoints are written.", "no|steps|epoch",
                       {{"no", Strategy::never},
                        {"false", Strategy::never},
                        {"steps", Strategy::steps},
                        {"epoch", Strategy::epoch},
                        {"best", Strategy::steps, "not supported yet"}},
                       &Recipe::save_strategy),
      choice<Strategy>(
          "eval_strategy", {"evaluation_strategy"}, "When eval_data is evaluated beside the end of the run.",
          "no|steps|epoch",
          {{"no", Strategy::never}, {"false", Strategy::never}, {"steps", Strategy::steps}, {"epoch", Strategy::epoch}},
          &Recipe::eval_strategy),
      boolean("load_best_model_at_end", {}, "The result is the checkpoint with the best evaluation, not the last.",
              &Recipe::load_best_model_at_end),
      choice<BestMetric>("metric_for_best_model", {}, "What the best evaluation is best in.",
                         "eval_loss|eval_token_accuracy|eval_exact",
                         {{"eval_loss", BestMetric::loss},
                          {"loss", BestMetric::loss},
                          {"eval_token_accuracy", BestMetric::token_accuracy},
                          {"eval_mean_token_accuracy", BestMetric::token_accuracy},
                          {"mean_token_accuracy", BestMetric::token_accuracy},
                          {"eval_exact", BestMetric::exact}},
                         &Recipe::metric_for_best_model),
      greater_is_better(),
      integer("early_stopping_patience", {},
              "Evaluations in a row that are no better after which the run ends; 0 for never.",
              {0, kMostSteps, "at least 0"}, &Recipe::early_stopping_patience),
      number("early_stopping_threshold", {},
             "By how much an evaluation must be better to count for early_stopping_patience.",
             {0.0, std::numeric_limits<double>::max(), "at least 0"}, &Recipe::early_stopping_threshold),
  };
}

void validate_strategies(const Recipe& recipe) {
  if (!recipe.load_best_model_at_end && recipe.early_stopping_patience == 0) return;
  const char* const what = recipe.load_best_model_at_end ? "load_best_model_at_end" : "early_stopping_patience";
  const bool repeated =
      recipe.eval_strategy == Strategy::epoch || (recipe.eval_strategy == Strategy::steps && recipe.eval_steps > 0);
  if (!repeated) refuse_strategies(fmt::format("{} needs evaluations", what), "set eval_strategy: epoch, or eval_steps");
  if (!evaluates(recipe)) refuse_strategies(fmt::format("{} needs rows to evaluate", what), "give eval_data, or val_size");
  const bool greater = recipe.metric_for_best_model != BestMetric::loss;
  if (recipe.greater_is_better && *recipe.greater_is_better != greater)
    refuse_strategies(fmt::format("greater_is_better: {} is not so for this metric_for_best_model", !greater), "remove it");
  if (recipe.load_best_model_at_end) validate_best(recipe);
}

}  // namespace snug
