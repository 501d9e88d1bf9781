// What golden_test.cpp does not say of schedules: the learning rate that a recipe leaves open.

#include "train/schedule.h"

#include <gtest/gtest.h>

namespace snug {

namespace {

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
