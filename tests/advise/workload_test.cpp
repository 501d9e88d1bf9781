#include "advise/workload.h"

#include <gtest/gtest.h>

#include "advise/alternatives.h"
#include "model/catalogue.h"
#include "plan/plan.h"
#include "plan/support_machines.h"
#include "recipe/keys.h"

namespace snug::testing {

namespace {

Recipe workload_recipe_with(const std::vector<Setting>& settings) {
  Recipe recipe;
  apply(recipe, "max_length", "512");
  for (const Setting& setting : settings) apply(recipe, setting.key, setting.value);
  return recipe;
}

TEST(Workload, ten_thousand_examples_are_their_steps_tokens_and_price) {
  Target target = counting_machine();
  target.dollars_per_hour = 3.6;
  Recipe recipe = workload_recipe_with({{"gradient_accumulation_steps", "16"}, {"num_train_epochs", "1"}});
  const Plan plan = make_plan(*find_model("HuggingFaceTB/SmolLM2-135M"), recipe, target);
  const Workload workload = workload_of(plan, 10'000, 512);
  const RunCost cost = run_cost(plan, workload);
  EXPECT_EQ(*cost.steps, 625);
  EXPECT_EQ(*cost.tokens, 5'120'000);
  EXPECT_DOUBLE_EQ(*cost.flops, 625 * plan.step_flops);
  EXPECT_DOUBLE_EQ(*cost.seconds, 625 * plan.step_time.seconds);
  EXPECT_DOUBLE_EQ(*cost.dollars, *cost.seconds / 1000);
}

TEST(Workload, short_examples_share_packed_rows_and_long_ones_are_cut) {
  const ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  const Plan packed = make_plan(model, workload_recipe_with({}), counting_machine());
  EXPECT_EQ(workload_of(packed, 10, 200).rows, 5);  // two of 200 in 512
  EXPECT_EQ(workload_of(packed, 10, 9999).tokens, 5120);
  const Plan padded = make_plan(model, workload_recipe_with({{"packing", "false"}}), counting_machine());
  EXPECT_EQ(workload_of(padded, 10, 200).rows, 10);
}

// Counted from parameters alone a step has what its Program counts, but for attention's scores, adapters' products and the
// first block's gradients that no adapter asks for.
TEST(Workload, products_with_weights_are_most_of_a_steps) {
  const ModelSpec model = *find_model("meta-llama/Llama-3.2-1B");
  for (const char* method : {"full", "lora"})
    for (const char* checkpoints : {"false", "true"}) {
      const Recipe recipe = workload_recipe_with(
          {{"method", method}, {"gradient_checkpointing", checkpoints}, {"gradient_accumulation_steps", "2"}});
      const double share = products_with_weights(model, recipe) / estimate(model, recipe, counting_machine()).step_flops;
      EXPECT_NEAR(share, 1, 0.06) << method << " " << checkpoints;
    }
}

TEST(Workload, what_is_unknown_stays_unknown) {
  Target target = counting_machine();
  target.cost.source.clear();
  const Plan plan = make_plan(*find_model("HuggingFaceTB/SmolLM2-135M"), workload_recipe_with({}), target);
  EXPECT_FALSE(run_cost(plan, std::nullopt).steps.has_value());
  const RunCost cost = run_cost(plan, workload_of(plan, 100, 512));
  EXPECT_TRUE(cost.steps.has_value());
  EXPECT_FALSE(cost.seconds.has_value());
  EXPECT_FALSE(cost.dollars.has_value());
}

}  // namespace

}  // namespace snug::testing
