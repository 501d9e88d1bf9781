// Learning rates beside transformers.get_scheduler's (tests/oracle/make_schedules.py), and the rate that a recipe leaves
// open.

#include "train/schedule.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "recipe/keys.h"

namespace snug {

namespace {

TEST(Schedule, is_that_of_transformers_throughout_a_run) {
  std::ifstream file(SNUG_SOURCE_DIR "/tests/golden/schedules.json");
  const auto golden = nlohmann::json::parse(file);
  int64_t compared = 0;
  for (const auto& expected : golden["cases"]) {
    Recipe recipe;
    recipe.learning_rate = golden["learning_rate"];
    const std::string name = expected["lr_scheduler_type"];
    apply(recipe, "lr_scheduler_type", name);
    apply(recipe, "lr_scheduler_kwargs", expected["lr_scheduler_kwargs"].dump());
    recipe.warmup_steps = expected["warmup_steps"];
    ASSERT_NO_THROW(validate(recipe)) << expected;
    const auto total = static_cast<int64_t>(expected["rates"].size());
    for (int64_t step = 0; step < total; ++step, ++compared) {
      const double rate = expected["rates"][static_cast<size_t>(step)];
      EXPECT_NEAR(learning_rate(recipe, step, total), rate, 1e-14)
          << name << " " << expected["lr_scheduler_kwargs"] << " " << step;
    }
  }
  EXPECT_GT(compared, 1500);
}

TEST(Schedule, an_open_learning_rate_is_the_methods_own) {
  Recipe recipe;
  recipe.lr_scheduler_type = Schedule::constant;
  recipe.method = Method::full;
  EXPECT_EQ(learning_rate(recipe, 3, 10), 5e-5);
  recipe.method = Method::lora;
  EXPECT_EQ(learning_rate(recipe, 3, 10), 2e-4);
  recipe.learning_rate = 1e-3;
  EXPECT_EQ(learning_rate(recipe, 3, 10), 1e-3);
}

TEST(Schedule, an_open_learning_rate_warms_up_and_falls_as_a_given_one) {
  Recipe open, given;
  given.learning_rate = 2e-4;
  for (Recipe* recipe : {&open, &given}) recipe->warmup_ratio = 0.25;
  for (const Schedule type : {Schedule::linear, Schedule::cosine})
    for (int64_t step = 0; step < 20; ++step) {
      open.lr_scheduler_type = given.lr_scheduler_type = type;
      EXPECT_EQ(learning_rate(open, step, 20), learning_rate(given, step, 20)) << "step " << step;
    }
}

}  // namespace

}  // namespace snug
