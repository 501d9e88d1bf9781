#include "advise/levers.h"

#include <gtest/gtest.h>

#include <set>

#include "model/catalogue.h"
#include "plan/support_machines.h"
#include "recipe/keys.h"
#include "sanitized.h"

namespace snug::testing {

namespace {

Recipe lever_recipe_with(const std::vector<Setting>& settings) {
  Recipe recipe;
  apply(recipe, "max_length", "1024");
  apply(recipe, "per_device_train_batch_size", "4");
  for (const Setting& setting : settings) apply(recipe, setting.key, setting.value);
  return recipe;
}

Recipe half_precision_recipe() {
  Recipe recipe;
  recipe.bf16 = true;
  recipe.batch = 4;
  recipe.seq_len = 512;
  return recipe;
}

TEST(Levers, a_saving_is_the_difference_of_two_plans) {
  std::set<std::string> keys;
  int64_t checked = 0;
  for (const std::vector<Setting>& settings : std::vector<std::vector<Setting>>{
           {},
           {{"method", "full"}, {"bf16", "true"}},
           {{"use_dora", "true"}, {"lora_target_modules", "all-linear"}},
           {{"bf16", "true"}, {"load_in_8bit", "true"}, {"prepare_model_for_kbit_training", "true"}},
           {{"method", "full"}, {"optim", "lion_32bit"}},
           {{"method", "full"}, {"num_processes", "8"}, {"zero_stage", "1"}, {"dp_replicate_size", "4"}}}) {
    const ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
    const Target target = target_with(int64_t{1} << 36);
    const Plan plan = make_plan(model, lever_recipe_with(settings), target);
    for (const Lever& lever : levers(plan)) {
      Recipe changed = plan.recipe;
      for (const Setting& setting : lever.change.settings) apply(changed, setting.key, setting.value);
      EXPECT_EQ(lever.saved_bytes, plan.peak_bytes - make_plan(model, changed, target).peak_bytes);
      EXPECT_GT(lever.saved_bytes, 0);
      EXPECT_GT(lever.slowdown, 0);
      keys.insert(lever.change.settings.front().key);
      ++checked;
    }
  }
  EXPECT_GE(checked, 40);
  for (const char* key :
       {"gradient_checkpointing", "per_device_train_batch_size", "optim", "load_in_4bit", "bf16", "max_length", "method",
        "lora_r", "lora_target_modules", "use_dora", "master_weights", "zero_stage", "dp_replicate_size"})
    EXPECT_TRUE(keys.contains(key)) << key;
}

TEST(Levers, those_without_effect_come_first_then_the_largest) {
  const Plan plan =
      make_plan(*find_model("HuggingFaceTB/SmolLM2-135M"), lever_recipe_with({}), target_with(int64_t{1} << 36));
  const std::vector<Lever> list = levers(plan);
  for (size_t i = 1; i < list.size(); ++i) {
    EXPECT_LE(list[i - 1].change.effect, list[i].change.effect);
    EXPECT_TRUE(list[i - 1].change.effect != list[i].change.effect || list[i - 1].saved_bytes >= list[i].saved_bytes);
  }
}

TEST(Levers, the_smallest_set_fits_and_lacks_nothing_it_could_do_without) {
  const ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  for (const char* method : {"lora", "full"})
    for (const int64_t mebibytes : thinned(std::vector{3000, 2000, 1200, 700, 400, 250, 150, 100, 60}, 4)) {
      const Target target = target_with(mebibytes << 20);
      const Plan plan = make_plan(model, lever_recipe_with({{"method", method}}), target);
      if (plan.fits()) continue;
      std::optional<LeverSet> closest;
      const auto set = smallest_set_that_fits(plan, closest);
      EXPECT_NE(set.has_value(), closest.has_value()) << method << " " << mebibytes;
      if (!set) {
        EXPECT_GT(closest->peak_bytes, plan.budget_bytes);
        continue;
      }
      EXPECT_TRUE(make_plan(model, set->recipe, target).fits());
      EXPECT_EQ(make_plan(model, set->recipe, target).peak_bytes, set->peak_bytes);
      for (size_t left_out = 0; left_out < set->changes.size(); ++left_out) {
        Recipe recipe = plan.recipe;
        for (size_t i = 0; i < set->changes.size(); ++i)
          if (i != left_out) recipe = set->changes[i].applied_to(std::move(recipe));
        EXPECT_FALSE(is_sound(recipe) && make_plan(model, recipe, target).fits()) << method << " " << mebibytes;
      }
    }
}

TEST(Levers, one_mebibyte_under_the_plan_does_not_fit_and_a_change_that_fits_is_named) {
  Recipe recipe = half_precision_recipe();
  const ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  recipe.memory_bytes = make_plan(model, recipe, target_with(int64_t{1} << 36)).peak_bytes;
  EXPECT_TRUE(make_plan(model, recipe, target_with(int64_t{1} << 36)).fits());
  recipe.memory_bytes -= 1 << 20;
  const Plan plan = make_plan(model, recipe, target_with(int64_t{1} << 36));
  EXPECT_FALSE(plan.fits());
  std::optional<LeverSet> closest;
  const auto set = smallest_set_that_fits(plan, closest);
  ASSERT_TRUE(set.has_value());
  EXPECT_EQ(set->changes.size(), 1U);
  EXPECT_EQ(set->effect, Effect::none);
  EXPECT_LE(set->peak_bytes, recipe.memory_bytes);
}

TEST(Levers, states_on_disk_are_a_change_that_may_fit_and_an_unsound_recipe_is_none) {
  Recipe recipe = half_precision_recipe();
  recipe.method = Method::full;
  recipe.batch = 2;
  recipe.gradient_checkpointing = true;
  recipe.max_grad_norm = 0;
  recipe.optimizer_in_bwd = true;  // so that two micro-batches are no way out
  recipe.memory_bytes = int64_t{1} << 30;
  const Plan plan = make_plan(*find_model("HuggingFaceTB/SmolLM2-135M"), recipe, target_with(int64_t{1} << 36));
  std::optional<LeverSet> closest;
  const auto set = smallest_set_that_fits(plan, closest);
  ASSERT_TRUE(set.has_value());
  ASSERT_EQ(set->changes.size(), 1U);
  EXPECT_EQ(set->changes[0].settings[0].key, "optim");
  EXPECT_EQ(set->changes[0].settings[0].value, "paged_adamw_32bit");
}

}  // namespace

}  // namespace snug::testing
