#include "plan/cost.h"

#include <gtest/gtest.h>

#include "model/catalogue.h"
#include "plan/plan.h"
#include "plan/support_machines.h"
#include "recipe/keys.h"

namespace snug::testing {

namespace {

Recipe recipe_with(const std::vector<std::pair<std::string_view, std::string_view>>& settings) {
  Recipe recipe;
  apply(recipe, "max_length", "512");
  for (const auto& [key, value] : settings) apply(recipe, key, value);
  return recipe;
}

TEST(Cost, with_arithmetic_alone_seconds_are_the_step_s_flops) {
  for (const char* method : {"full", "lora", "qlora"}) {
    const Plan plan = make_plan(*find_model("meta-llama/Llama-3.2-1B"),
                                recipe_with({{"method", method}, {"gradient_accumulation_steps", "3"}}), counting_machine());
    EXPECT_NEAR(plan.step_time.seconds / plan.step_flops, 1.0, 1e-12) << method;
  }
}

TEST(Cost, a_step_of_full_fine_tuning_is_six_flops_a_parameter_and_token) {
  // Kaplan et al. (2020), appendix B: 6 N a token without embeddings; the tied head counts, attention's scores come on top.
  const Plan plan = make_plan(*find_model("meta-llama/Llama-3.2-1B"), recipe_with({{"method", "full"}}), counting_machine());
  const double rule = 6.0 * 1235814400.0 * 512;
  EXPECT_GT(plan.step_flops, rule);
  EXPECT_LT(plan.step_flops, 1.05 * rule);
}

TEST(Cost, recomputing_every_block_adds_less_than_half_of_a_forward_pass_and_time_to_backward) {
  const ModelSpec model = *find_model("meta-llama/Llama-3.2-1B");
  const Plan plain = make_plan(model, recipe_with({}), counting_machine());
  const Plan again = make_plan(model, recipe_with({{"gradient_checkpointing", "true"}}), counting_machine());
  const auto backward = static_cast<size_t>(Stage::backward), forward = static_cast<size_t>(Stage::forward);
  EXPECT_DOUBLE_EQ(again.step_time.stages[forward], plain.step_time.stages[forward]);
  EXPECT_GT(again.step_time.stages[backward], plain.step_time.stages[backward]);
}

}  // namespace

}  // namespace snug::testing
