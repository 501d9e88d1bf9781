#include "plan/cost.h"

#include <gtest/gtest.h>

#include "model/catalogue.h"
#include "plan/alternatives.h"
#include "plan/plan.h"
#include "plan/solve.h"
#include "plan/workload.h"
#include "recipe/keys.h"

namespace snug::testing {

namespace {

// A machine on which arithmetic alone takes time, one FLOP a second: seconds are the FLOPs.
Target counting_machine() {
  Target target{.threads = 1, .memory_bytes = int64_t{1} << 40, .runtime_bytes = 1 << 20};
  for (CostRate& rate : target.cost.rates) rate = {.flops = 1.0};
  target.cost.source = "a machine that counts";
  return target;
}

Recipe recipe_with(const std::vector<Setting>& settings) {
  Recipe recipe;
  apply(recipe, "max_length", "512");
  for (const Setting& setting : settings) apply(recipe, setting.key, setting.value);
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

TEST(Workload, ten_thousand_examples_are_their_steps_tokens_and_price) {
  Target target = counting_machine();
  target.dollars_per_hour = 3.6;
  Recipe recipe = recipe_with({{"gradient_accumulation_steps", "16"}, {"num_train_epochs", "1"}});
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
  const Plan packed = make_plan(model, recipe_with({}), counting_machine());
  EXPECT_EQ(workload_of(packed, 10, 200).rows, 5);  // two of 200 in 512
  EXPECT_EQ(workload_of(packed, 10, 9999).tokens, 5120);
  const Plan padded = make_plan(model, recipe_with({{"packing", "false"}}), counting_machine());
  EXPECT_EQ(workload_of(padded, 10, 200).rows, 10);
}

TEST(Workload, what_is_unknown_stays_unknown) {
  Target target = counting_machine();
  target.cost.source.clear();
  const Plan plan = make_plan(*find_model("HuggingFaceTB/SmolLM2-135M"), recipe_with({}), target);
  EXPECT_FALSE(run_cost(plan, std::nullopt).steps.has_value());
  const RunCost cost = run_cost(plan, workload_of(plan, 100, 512));
  EXPECT_TRUE(cost.steps.has_value());
  EXPECT_FALSE(cost.seconds.has_value());
  EXPECT_FALSE(cost.dollars.has_value());
}

TEST(Solve, the_answer_fits_and_one_more_does_not) {
  const ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  Target target = counting_machine();
  target.memory_bytes = int64_t{2} << 30;
  for (const Quantity quantity : {Quantity::batch, Quantity::seq, Quantity::rank}) {
    const auto solution = largest_that_fits(model, recipe_with({}), target, quantity);
    ASSERT_TRUE(solution.has_value());
    EXPECT_TRUE(solution->plan.fits());
    Recipe more = solution->plan.recipe;
    if (quantity == Quantity::batch) ++more.batch;
    if (quantity == Quantity::seq) more.seq_len += 64;
    if (quantity == Quantity::rank) ++more.lora.r;
    EXPECT_EQ(solution->stopped_by == "the budget", !make_plan(model, more, target).fits());
  }
  target.memory_bytes = 1 << 20;
  EXPECT_FALSE(largest_that_fits(model, recipe_with({}), target, Quantity::batch).has_value());
}

}  // namespace

}  // namespace snug::testing
