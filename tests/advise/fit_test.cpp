#include "advise/fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"
#include "model/catalogue.h"
#include "plan/support_machines.h"
#include "recipe/keys.h"
#include "sanitized.h"

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

// What a recipe needs does not change with the memory there is, but where recompute is chosen by it.
struct FitNeed {
  int64_t bytes = 0;
  double seconds = 0;
};
using FitNeeds = std::map<size_t, FitNeed>;  // by the recipe's place in the space

FitBruteForce brute_force(const ModelSpec& model, const std::vector<FitChoice>& space, const Target& target,
                          FitNeeds& known) {
  FitBruteForce result;
  for (size_t i = 0; i < space.size(); ++i) {
    FitNeed need;
    if (const auto found = known.find(i); found != known.end()) {
      need = found->second;
    } else {
      const Plan plan = make_plan(model, space[i].recipe, target);
      need = {plan.peak_bytes, step_time(target.cost, plan.program).seconds};
      if (!space[i].recipe.checkpoint_to_budget) known[i] = need;
    }
    ++result.recipes;
    result.least_bytes = std::min(result.least_bytes, need.bytes);
    result.most_bytes = std::max(result.most_bytes, need.bytes);
    if (need.bytes <= target.memory_bytes) result.best_score = std::min(result.best_score, need.seconds * space[i].score);
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
      {kSmol, {{"lora_target_modules", "all-linear"}}, {"optim"}},
      {kSmol, {}, {}},
      {kSmol, {{"method", "full"}}, {}},
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
  for (const SmallSpace& small : small_spaces()) {
    const ModelSpec model = small_model(small.model);
    const Recipe asked = recipe_with(small.settings);
    const std::vector<FitChoice> space = fit_space(model, asked, small.fixed, target_with(1));
    FitNeeds known;
    const int64_t least_bytes = brute_force(model, space, target_with(1), known).least_bytes;
    const int64_t most_bytes = brute_force(model, space, target_with(std::numeric_limits<int64_t>::max()), known).most_bytes;
    ASSERT_LT(least_bytes, most_bytes);
    for (const double share : {0.03, 0.2, 0.7}) {  // of the way from what needs least to what needs most
      const auto above = static_cast<int64_t>(share * static_cast<double>(most_bytes - least_bytes));
      const Target target = target_with(least_bytes + above);
      const FitBruteForce expected = brute_force(model, space, target, known);
      const FitReport found = fit(model, asked, small.fixed, target);
      ASSERT_FALSE(found.front.empty()) << small.model << " " << share;
      EXPECT_DOUBLE_EQ(found.front.front().score, expected.best_score) << small.model << " " << share;
      EXPECT_EQ(found.candidates, expected.recipes);
      EXPECT_LE(found.compiled, found.candidates);
      ++compared;
    }
    if (kSanitized) return;  // of one space: the others are more of the same code
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
  FitNeeds known;
  const FitBruteForce all = brute_force(model, fit_space(model, asked, {}, target), target, known);
  EXPECT_EQ(report.least->peak_bytes, all.least_bytes);
}

}  // namespace

}  // namespace snug::testing
