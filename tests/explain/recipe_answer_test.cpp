#include "explain/recipe_answer.h"

#include <gtest/gtest.h>

#include "model/catalogue.h"
#include "plan/accelerator_target.h"

namespace snug {
namespace {

constexpr int64_t kGibibyte = int64_t{1} << 30;

Recipe mistral() {
  Recipe recipe;
  recipe.model = "mistralai/Mistral-7B-v0.1";
  recipe.bf16 = true;
  recipe.batch = 8;
  recipe.seq_len = 2048;
  return recipe;
}

TEST(RecipeAnswer, settings_of_our_own_recipe_make_it_fit) {
  const Recipe recipe = mistral();
  const std::optional<ForeignRecipe> none;
  const Target target = target_of(*find_accelerator("RTX-4090"));
  const RecipeAnswer answer =
      answer_for_recipe({recipe, none, ""}, target, target.memory_bytes, kGibibyte, TorchStage::backward);
  EXPECT_EQ(answer.dialect, "snug");
  ASSERT_TRUE(answer.advice.set);
  ASSERT_TRUE(answer.advice.enough);
  EXPECT_FALSE(answer.settings.empty());
  EXPECT_FALSE(answer.patch.has_value());
  EXPECT_TRUE(answer.outside.empty());
  Recipe changed = recipe;
  for (const Setting& setting : answer.settings)
    changed = Alternative{.settings = {setting}, .note = {}}.applied_to(changed);
  EXPECT_EQ(make_plan(resolve_model(recipe.model), changed, target).peak_bytes, answer.advice.set->peak_bytes);
}

TEST(RecipeAnswer, what_ran_out_beside_training_is_told_and_not_held_against_the_recipe) {
  const Recipe recipe = mistral();
  const std::optional<ForeignRecipe> none;
  const Target target = target_of(*find_accelerator("RTX-4090"));
  const RecipeAnswer answer =
      answer_for_recipe({recipe, none, ""}, target, target.memory_bytes, 4 * kGibibyte, TorchStage::evaluation);
  EXPECT_NE(answer.outside.find("beside the training step"), std::string::npos) << answer.outside;
  const RecipeAnswer training =
      answer_for_recipe({recipe, none, ""}, target, target.memory_bytes, 4 * kGibibyte, TorchStage::backward);
  EXPECT_GE(answer.advice.budget_bytes, training.advice.budget_bytes);
  EXPECT_TRUE(is_of_training(TorchStage::backward));
  EXPECT_FALSE(is_of_training(TorchStage::save));
}

}  // namespace
}  // namespace snug
