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

// Copies in take 2 s, an update 3 s, copies out 1 s.
struct PagedStep {
  explicit PagedStep(int windows, int64_t count) {
    Region loop{.name = "paged", .section = Section::step, .stage = Stage::optimizer, .axis = Axis::chunk, .count = count};
    std::vector<TensorId> held;
    const TensorId far = program.make("far", DType::f32, {4}, Role::optimizer, Lifetime::run);
    for (int i = 0; i < windows; ++i) held.push_back(program.make("window", DType::f32, {4}, Role::temporary));
    for (const TensorId w : held) loop.add(Op{OpKind::page_in, Lane::copy_in}).reads(Slot::far, far).writes(Slot::window, w);
    for (const TensorId w : held) loop.add(Op{OpKind::zero}).updates(Slot::gradient, w);
    for (const TensorId w : held)
      loop.add(Op{OpKind::page_out, Lane::copy_out}).reads(Slot::far, far).reads(Slot::window, w);
    program.root.add(std::move(loop));
    model.rate(CostClass::from_host) = {.seconds = 2};
    model.rate(CostClass::rows) = {.seconds = 3};
    model.rate(CostClass::to_host) = {.seconds = 1};
  }

  Program program;
  CostModel model;
};

TEST(Cost, copies_beside_compute_take_no_time_of_their_own_where_windows_are_two) {
  for (const int64_t count : {1, 2, 3, 100}) {
    const auto n = static_cast<double>(count);
    PagedStep one(1, count), two(2, count);
    EXPECT_DOUBLE_EQ(step_time(one.model, one.program).seconds, 6 * n);
    EXPECT_DOUBLE_EQ(step_time(two.model, two.program).seconds, 12 * n);
    one.model.copies_beside = two.model.copies_beside = true;
    // The window is wanted again: each copy waits for the one before.
    EXPECT_DOUBLE_EQ(step_time(one.model, one.program).seconds, 6 * n);
    // Drawn by hand: in 0-2 and 2-4, updates 2-5 and 5-8, out 5-6 and 8-9; the first window comes back in 6-8, and so on.
    const StepTime time = step_time(two.model, two.program);
    EXPECT_DOUBLE_EQ(time.seconds, 9 + 6 * (n - 1));
    EXPECT_DOUBLE_EQ(time.stages[static_cast<size_t>(Stage::optimizer)], time.seconds);
  }
}

}  // namespace

}  // namespace snug::testing
