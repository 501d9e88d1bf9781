// Levers, sets of them and --solve, asked of PyTorch's engine.

#include <gtest/gtest.h>

#include <set>

#include "advise/levers.h"
#include "advise/solve.h"
#include "advise/support_pytorch.h"
#include "model/catalogue.h"
#include "plan/support_machines.h"
#include "recipe/keys.h"

namespace snug::testing {

namespace {

Recipe four_rows() {
  Recipe recipe;
  recipe.bf16 = true;
  recipe.batch = 4;
  recipe.seq_len = 512;
  return recipe;
}

TEST(PyTorchLevers, a_saving_is_the_difference_of_two_whole_runs) {
  const ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  const Target target = target_with(int64_t{1} << 40);
  PyTorchEngine engine(model, target, pytorch_side_with(int64_t{1} << 34, model));
  const Plan plan = make_plan(model, four_rows(), target);
  std::set<std::string> keys;
  for (const Lever& lever : levers(plan, engine)) {
    const Recipe changed = lever.change.applied_to(plan.recipe);
    const auto bytes = [&](const Recipe& recipe) {
      return eager::estimate(model, engine.side().setup(recipe), engine.side().stack, engine.side().card).device_high_bytes;
    };
    EXPECT_EQ(lever.saved_bytes, bytes(plan.recipe) - bytes(changed));
    EXPECT_GT(lever.slowdown, 0);
    keys.insert(lever.change.settings.front().key);
  }
  for (const char* key : {"gradient_checkpointing", "per_device_train_batch_size", "max_length"})
    EXPECT_TRUE(keys.contains(key)) << key;
}

TEST(PyTorchLevers, the_smallest_set_fits_by_a_whole_run) {
  const ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  const Target target = target_with(int64_t{1} << 40);
  int found = 0;
  for (const int64_t mebibytes : {5000, 3000, 2000, 1500}) {
    PyTorchEngine engine(model, target, pytorch_side_with(mebibytes << 20, model));
    const Plan plan = make_plan(model, four_rows(), target);
    if (engine.exactly(plan.recipe).bytes <= engine.budget_bytes()) continue;
    std::optional<LeverSet> closest;
    const auto set = smallest_set_that_fits(plan, engine, closest);
    if (!set) {
      ASSERT_TRUE(closest.has_value());
      EXPECT_GT(closest->peak_bytes, engine.budget_bytes());
      continue;
    }
    ++found;
    EXPECT_EQ(engine.exactly(set->recipe).bytes, set->peak_bytes);
    EXPECT_LE(set->peak_bytes, engine.budget_bytes());
  }
  EXPECT_GE(found, 2);
}

TEST(PyTorchSolve, the_answer_fits_and_one_more_does_not) {
  const ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  const Target target = target_with(int64_t{1} << 40);
  PyTorchEngine engine(model, target, pytorch_side_with(int64_t{6} << 30, model));
  Recipe recipe = four_rows();
  recipe.batch = 1;
  for (const Quantity quantity : {Quantity::batch, Quantity::seq, Quantity::rank}) {
    const auto solution = largest_that_fits(model, recipe, engine, quantity);
    ASSERT_TRUE(solution.has_value());
    EXPECT_LE(solution->peak_bytes, engine.budget_bytes());
    Recipe more = solution->recipe;
    if (quantity == Quantity::batch) ++more.batch;
    if (quantity == Quantity::seq) more.seq_len += 64;
    if (quantity == Quantity::rank) ++more.lora.r;
    EXPECT_EQ(solution->stopped_by == "the budget", engine.exactly(more).bytes > engine.budget_bytes());
  }
  PyTorchEngine small(model, target, pytorch_side_with(int64_t{700} << 20, model));
  EXPECT_FALSE(largest_that_fits(model, recipe, small, Quantity::batch).has_value());
}

}  // namespace

}  // namespace snug::testing
