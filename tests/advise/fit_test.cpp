#include "advise/fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "model/catalogue.h"
#include "plan/support_machines.h"
#include "recipe/keys.h"

namespace snug::testing {

namespace {

ModelSpec small_model(const char* name) {
  ModelSpec model = *find_model(name);
  model.layers = 4;
  return model;
}

Recipe recipe_with(const std::vector<Setting>& settings) {
  Recipe recipe;
  apply(recipe, "bf16", "true");
  apply(recipe, "max_length", "256");
  apply(recipe, "gradient_accumulation_steps", "4");
  for (const Setting& setting : settings) apply(recipe, setting.key, setting.value);
  return recipe;
}

// Every recipe of the space laid out in full, the best by score.
struct FitBruteForce {
  double best_score = std::numeric_limits<double>::infinity();
  int64_t least_bytes = std::numeric_limits<int64_t>::max();
  int64_t most_bytes = 0;
  int64_t recipes = 0;
};
FitBruteForce brute_force(const ModelSpec& model, const Recipe& asked, const std::vector<std::string>& fixed,
                          const Target& target) {
  FitBruteForce result;
  for (const FitChoice& choice : fit_space(model, asked, fixed, target)) {
    const Plan plan = make_plan(model, choice.recipe, target);
    ++result.recipes;
    result.least_bytes = std::min(result.least_bytes, plan.peak_bytes);
    result.most_bytes = std::max(result.most_bytes, plan.peak_bytes);
    const double score = step_time(target.cost, plan.program).seconds * choice.score;
    if (plan.peak_bytes <= target.memory_bytes) result.best_score = std::min(result.best_score, score);
  }
  return result;
}

struct SmallSpace {
  const char* model;
  std::vector<Setting> settings;
  std::vector<std::string> fixed;
};

const std::vector<SmallSpace>& small_spaces() {
  constexpr const char* kSmol = "HuggingFaceTB/SmolLM2-135M";
  constexpr const char* kTiny = "TinyLlama/TinyLlama-1.1B-Chat-v1.0";
  static const std::vector<SmallSpace> spaces = {
      {kSmol, {}, {}},
      {kSmol, {{"method", "full"}}, {}},
      {kSmol, {{"lora_target_modules", "all-linear"}}, {"optim"}},
      {kSmol, {{"method", "full"}, {"optim", "lion_32bit"}}, {"master_weights"}},
      {kTiny, {{"load_in_4bit", "true"}}, {}},
      {kTiny, {{"method", "full"}, {"max_grad_norm", "0"}, {"gradient_accumulation_steps", "1"}}, {}},
      {kTiny, {{"gradient_checkpointing", "true"}}, {"gradient_checkpointing"}},
      {kSmol, {{"gradient_accumulation_steps", "6"}, {"lora_r", "64"}}, {"load_in_4bit"}},
  };
  return spaces;
}

TEST(Fit, the_optimum_is_brute_forces_on_two_dozen_small_spaces) {
  int64_t compared = 0;
  for (const SmallSpace& space : small_spaces()) {
    const ModelSpec model = small_model(space.model);
    const Recipe asked = recipe_with(space.settings);
    const int64_t least_bytes = brute_force(model, asked, space.fixed, target_with(1)).least_bytes;
    const int64_t most_bytes =
        brute_force(model, asked, space.fixed, target_with(std::numeric_limits<int64_t>::max())).most_bytes;
    ASSERT_LT(least_bytes, most_bytes);
    for (const double share : {0.03, 0.2, 0.7}) {  // of the way from what needs least to what needs most
      const auto above = static_cast<int64_t>(share * static_cast<double>(most_bytes - least_bytes));
      const Target target = target_with(least_bytes + above);
      const FitBruteForce expected = brute_force(model, asked, space.fixed, target);
      const FitReport found = fit(model, asked, space.fixed, target);
      ASSERT_FALSE(found.front.empty()) << space.model << " " << share;
      EXPECT_DOUBLE_EQ(found.front.front().score, expected.best_score) << space.model << " " << share;
      EXPECT_EQ(found.candidates, expected.recipes);
      EXPECT_LE(found.compiled, found.candidates);
      ++compared;
    }
  }
  EXPECT_GE(compared, 20);
}

// Whole blocks, as many as it takes, are what other trainers offer.
TEST(Fit, what_is_made_again_to_fit_is_no_slower_than_any_number_of_whole_blocks) {
  for (const char* name : {"HuggingFaceTB/SmolLM2-135M", "openai-community/gpt2"}) {
    const ModelSpec model = *find_model(name);
    const Recipe asked = recipe_with({{"method", "full"}, {"max_length", "1024"}});
    for (int64_t blocks = 0; blocks <= model.layers; blocks += 3) {
      const Recipe whole = recomputing(blocks, model.layers).applied_to(asked);
      const Estimate theirs = estimate(model, whole, target_with(1));
      const Estimate ours = estimate(model, recomputing_to_fit().applied_to(asked), target_with(theirs.peak_bytes));
      EXPECT_LE(ours.peak_bytes, theirs.peak_bytes) << name << " " << blocks;
      EXPECT_LE(ours.step_time.seconds, theirs.step_time.seconds * (1 + 1e-9)) << name << " " << blocks;
    }
  }
}

TEST(Fit, what_is_shown_fits_when_planned_and_is_beaten_by_nothing_else_shown) {
  const ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  const Target target = target_with(int64_t{1200} << 20);
  const FitReport report = fit(model, recipe_with({{"method", "full"}, {"max_length", "1024"}}), {}, target);
  ASSERT_GE(report.front.size(), 2U);
  for (const FitChoice& choice : report.front) {
    const Plan plan = make_plan(model, choice.recipe, target);
    EXPECT_EQ(plan.peak_bytes, choice.peak_bytes);
    EXPECT_TRUE(plan.fits());
    EXPECT_EQ(choice.recipe.batch * choice.recipe.accumulation, 4);
    for (const FitChoice& other : report.front)
      EXPECT_FALSE(other.step_seconds < choice.step_seconds && other.peak_bytes < choice.peak_bytes &&
                   other.effect < choice.effect);
  }
  EXPECT_EQ(report.laid_out, static_cast<int64_t>(report.front.size()));
}

TEST(Fit, fixed_keys_stay_and_settings_make_the_recipe) {
  const ModelSpec model = small_model("HuggingFaceTB/SmolLM2-135M");
  const Recipe asked = recipe_with({{"optim", "adamw_8bit"}});
  for (const FitChoice& choice : fit_space(model, asked, {"optim", "gradient_checkpointing"}, target_with(0))) {
    EXPECT_EQ(choice.recipe.optim, Optimizer::adamw_8bit);
    EXPECT_FALSE(choice.recipe.gradient_checkpointing);
  }
  const FitReport report = fit(model, asked, {"optim"}, target_with(int64_t{1} << 30));
  ASSERT_FALSE(report.front.empty());
  for (const FitChoice& choice : report.front) {
    Recipe recipe = asked;
    for (const Setting& setting : choice.settings) apply(recipe, setting.key, setting.value);
    EXPECT_TRUE(differences(recipe, choice.recipe).empty());
  }
}

TEST(Fit, the_disk_is_for_what_the_memory_does_not_hold) {
  const ModelSpec model = small_model("HuggingFaceTB/SmolLM2-135M");
  const Recipe asked = recipe_with({{"method", "lora"}});
  const std::vector<std::string> fixed = {"optim", "load_in_4bit", "load_in_8bit"};
  const Recipe roomy = fit(model, asked, fixed, target_with(int64_t{1} << 34)).front.front().recipe;
  EXPECT_FALSE(roomy.offload_activations || roomy.offload_weights);
  Recipe least = asked;
  least.gradient_checkpointing = true;
  const int64_t kept = make_plan(model, least, target_with(0)).peak_bytes;
  const FitReport tight = fit(model, asked, fixed, target_with(kept - (kept >> 4)));
  ASSERT_FALSE(tight.front.empty());
  EXPECT_TRUE(tight.front.front().recipe.offload_activations);
  Target card = target_with(kept - (kept >> 4));
  card.kind = TargetKind::cuda;
  EXPECT_TRUE(fit(model, asked, fixed, card).front.empty());
}

TEST(Fit, with_the_blocks_settled_all_are_recomputed_or_none) {
  const ModelSpec model = small_model("HuggingFaceTB/SmolLM2-135M");
  const Recipe asked = recipe_with({{"method", "lora"}});
  std::vector<std::string> seen;
  for (const FitChoice& choice :
       fit_space(model, asked, {"checkpoint_layers", "optim", "load_in_4bit", "load_in_8bit"}, target_with(0))) {
    EXPECT_TRUE(choice.recipe.checkpoint_layers.empty());
    seen.emplace_back(choice.recipe.gradient_checkpointing ? "all" : "none");
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "all"), std::count(seen.begin(), seen.end(), "none"));
  EXPECT_FALSE(seen.empty());
}

TEST(Fit, where_nothing_fits_the_least_is_told) {
  const ModelSpec model = small_model("HuggingFaceTB/SmolLM2-135M");
  const Recipe asked = recipe_with({});
  const Target target = target_with(16 << 20);
  const FitReport report = fit(model, asked, {}, target);
  EXPECT_TRUE(report.front.empty());
  ASSERT_TRUE(report.least.has_value());
  const FitBruteForce all = brute_force(model, asked, {}, target);
  EXPECT_EQ(report.least->peak_bytes, all.least_bytes);
}

}  // namespace

}  // namespace snug::testing
