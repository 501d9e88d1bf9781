#include "explain/recipe_advice.h"

#include <gtest/gtest.h>

#include "model/catalogue.h"
#include "plan/accelerator_target.h"

namespace snug {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

Recipe recipe_of(Method method) {
  Recipe recipe;
  recipe.method = method;
  recipe.bf16 = true;
  recipe.batch = 4;
  recipe.accumulation = 2;
  recipe.seq_len = 1024;
  return recipe;
}

// Plans the advised recipe again, as `snug plan` would: it must be what was promised, within the budget.
void expect_kept(const RecipeAdvice& advice, const ModelSpec& model, const Target& target) {
  ASSERT_TRUE(advice.set);
  ASSERT_TRUE(advice.enough);
  const Plan plan = make_plan(model, advice.set->recipe, target);
  EXPECT_EQ(plan.peak_bytes, advice.set->peak_bytes);
  EXPECT_LE(plan.peak_bytes, advice.budget_bytes);
  EXPECT_LT(plan.peak_bytes, advice.plan_bytes);
}

TEST(RecipeAdvice, what_is_advised_fits_when_it_is_planned_on_every_card_and_method) {
  const ModelSpec model = resolve_model("mistralai/Mistral-7B-v0.1");
  int changed = 0;
  for (const char* card : {"RTX-3060", "RTX-4090", "A100-SXM4-40GB", "H100-SXM5-80GB"}) {
    const Target target = target_of(*find_accelerator(card));
    for (const Method method : {Method::lora, Method::full})
      for (const int64_t missing : {int64_t{0}, kGiB / 2, 4 * kGiB}) {
        const RecipeAdvice advice = advise_on(model, recipe_of(method), target, target.memory_bytes, missing);
        EXPECT_FALSE(advice.levers.empty());
        if (!advice.must_change()) continue;
        ++changed;
        if (advice.enough) expect_kept(advice, model, target);
      }
  }
  EXPECT_GE(changed, 12);
}

TEST(RecipeAdvice, a_plan_shrinks_in_the_proportion_in_which_pytorch_must) {
  const ModelSpec model = resolve_model("mistralai/Mistral-7B-v0.1");
  const Target target = target_of(*find_accelerator("H100-SXM5-80GB"));
  const RecipeAdvice advice = advise_on(model, recipe_of(Method::lora), target, 60 * kGiB, 15 * kGiB);
  ASSERT_LT(advice.plan_bytes, 57 * kGiB);  // ours fits; PyTorch's needed 75 of 60
  EXPECT_NEAR(static_cast<double>(advice.budget_bytes), static_cast<double>(advice.plan_bytes) * 57 / 75, 2.0);
  expect_kept(advice, model, target);
}

TEST(RecipeAdvice, where_all_fits_nothing_must_change) {
  const ModelSpec model = resolve_model("HuggingFaceTB/SmolLM2-135M");
  const Target target = target_of(*find_accelerator("RTX-4090"));
  const RecipeAdvice advice = advise_on(model, recipe_of(Method::lora), target, target.memory_bytes, 0);
  EXPECT_FALSE(advice.must_change());
  EXPECT_FALSE(advice.set);
}

}  // namespace
}  // namespace snug
