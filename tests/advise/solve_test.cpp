#include "advise/solve.h"

#include <gtest/gtest.h>

#include "model/catalogue.h"
#include "plan/plan.h"

namespace snug::testing {

namespace {

TEST(Solve, the_answer_fits_and_one_more_does_not) {
  const ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  Recipe recipe;
  recipe.seq_len = 512;
  Target target{.threads = 1, .memory_bytes = int64_t{2} << 30, .runtime_bytes = 1 << 20};
  for (const Quantity quantity : {Quantity::batch, Quantity::seq, Quantity::rank}) {
    const auto solution = largest_that_fits(model, recipe, target, quantity);
    ASSERT_TRUE(solution.has_value());
    EXPECT_TRUE(solution->plan.fits());
    Recipe more = solution->plan.recipe;
    if (quantity == Quantity::batch) ++more.batch;
    if (quantity == Quantity::seq) more.seq_len += 64;
    if (quantity == Quantity::rank) ++more.lora.r;
    EXPECT_EQ(solution->stopped_by == "the budget", !make_plan(model, more, target).fits());
  }
  target.memory_bytes = 1 << 20;
  EXPECT_FALSE(largest_that_fits(model, recipe, target, Quantity::batch).has_value());
}

}  // namespace

}  // namespace snug::testing
