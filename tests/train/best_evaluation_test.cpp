// The best evaluation and the end of a run that gets no better, beside transformers' (tests/oracle/make_early_stopping.py).

#include "train/best_evaluation.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

namespace snug {

namespace {

TEST(BestEvaluation, is_that_of_transformers_and_ends_a_run_where_it_does) {
  std::ifstream file(SNUG_SOURCE_DIR "/tests/golden/early_stopping.json");
  int ended = 0;
  const auto golden = nlohmann::json::parse(file);
  for (const auto& course : golden["cases"]) {
    Recipe recipe;
    recipe.early_stopping_patience = course["patience"];
    recipe.early_stopping_threshold = course["threshold"];
    recipe.metric_for_best_model = course["greater"].get<bool>() ? BestMetric::token_accuracy : BestMetric::loss;
    BestEvaluation best(recipe);
    int64_t step = 0;
    for (const double value : course["values"]) {
      if (best.is_hopeless()) break;
      step += 10;
      best.note({.step = step, .loss = value, .token_accuracy = value});
    }
    EXPECT_EQ(best.step(), course["best_step"].get<int64_t>()) << course;
    EXPECT_EQ(best.is_hopeless(), !course["end"].is_null()) << course;
    if (course["end"].is_null()) continue;
    EXPECT_EQ(step, course["end"].get<int64_t>()) << course;
    ++ended;
  }
  EXPECT_GT(ended, 60);
}

TEST(BestEvaluation, counts_neither_one_before_the_first_step_nor_what_is_no_number) {
  Recipe recipe;
  BestEvaluation best(recipe);
  best.note({.step = 0, .loss = 0.1});
  best.note({.step = 1, .loss = std::numeric_limits<double>::quiet_NaN()});
  EXPECT_EQ(best.step(), -1);
  best.note({.step = 2, .loss = 7.0});
  EXPECT_EQ(best.step(), 2);
  EXPECT_FALSE(best.is_hopeless());
}

}  // namespace

}  // namespace snug
