#include "advise/pytorch_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "advise/support_pytorch.h"
#include "base/error.h"
#include "model/catalogue.h"
#include "plan/support_machines.h"
#include "recipe/keys.h"
#include "sanitized.h"

namespace snug::testing {

namespace {

constexpr int64_t kLargeCard = int64_t{1} << 42;

Recipe recipe_for_pytorch(const std::vector<Setting>& settings) {
  Recipe recipe;
  apply(recipe, "bf16", "true");
  apply(recipe, "max_length", "512");
  apply(recipe, "gradient_accumulation_steps", "4");
  for (const Setting& setting : settings) apply(recipe, setting.key, setting.value);
  return recipe;
}

// Every recipe of the space followed as a whole.
struct Judged {
  int64_t bytes = 0;
  double score = 0;
};
std::vector<Judged> judge_all(const ModelSpec& model, const Recipe& asked, const PyTorchSearch& search,
                              const Target& target) {
  PyTorchEngine engine(model, target, pytorch_side_with(kLargeCard, model));
  std::vector<Judged> judged;
  for (const FitChoice& choice : pytorch_space(model, asked, search))
    if (const Need need = engine.exactly(choice.recipe); need.bytes != kNever)
      judged.push_back({need.bytes, choice.score * need.step_seconds});
  return judged;
}

struct PyTorchSmallSpace {
  const char* model;
  int64_t layers;
  std::vector<Setting> settings;
  std::vector<std::string> fixed;
};

const std::vector<PyTorchSmallSpace>& pytorch_small_spaces() {
  constexpr const char* kSmol = "HuggingFaceTB/SmolLM2-135M";
  constexpr const char* kTiny = "TinyLlama/TinyLlama-1.1B-Chat-v1.0";
  static const std::vector<PyTorchSmallSpace> spaces = {
      {kSmol, 4, {}, {}},
      {kSmol, 4, {{"method", "full"}}, {}},
      {kTiny, 3, {{"lora_target_modules", "all-linear"}, {"load_in_4bit", "true"}}, {"load_in_4bit"}},
      {kSmol, 4, {{"gradient_checkpointing", "true"}}, {"gradient_checkpointing"}},
      {kSmol, 30, {{"lora_target_modules", "all-linear"}}, {"load_in_4bit", "load_in_8bit"}},
      {kSmol, 30, {{"method", "full"}}, {}},
  };
  return spaces;
}

TEST(PyTorchFit, the_optimum_is_brute_forces_by_the_eager_model) {
  const Target target = target_with(int64_t{1} << 40);
  for (const PyTorchSmallSpace& space : pytorch_small_spaces()) {
    ModelSpec model = *find_model(space.model);
    model.layers = space.layers;
    const Recipe asked = recipe_for_pytorch(space.settings);
    const PyTorchSearch search{.fixed = space.fixed, .can_say = {}};
    const std::vector<Judged> all = judge_all(model, asked, search, target);
    const auto [least, most] =
        std::minmax_element(all.begin(), all.end(), [](const Judged& a, const Judged& b) { return a.bytes < b.bytes; });
    for (const double share : {0.05, 0.3, 0.8}) {  // of the way from what needs least to what needs most
      const auto card = least->bytes + static_cast<int64_t>(share * static_cast<double>(most->bytes - least->bytes));
      PyTorchEngine engine(model, target, pytorch_side_with(card + card / 20, model));
      double expected = std::numeric_limits<double>::infinity();
      for (const Judged& one : all)
        if (one.bytes <= engine.budget_bytes()) expected = std::min(expected, one.score);
      const FitReport found = fit_in_pytorch(model, asked, search, engine);
      ASSERT_FALSE(found.front.empty()) << space.model << " " << share;
      EXPECT_DOUBLE_EQ(found.front.front().score, expected) << space.model << " " << share;
      EXPECT_EQ(found.candidates, static_cast<int64_t>(all.size()));
      EXPECT_LT(found.laid_out, found.candidates);
    }
    if (kSanitized) return;  // of one space: the others are more of the same code
  }
}

TEST(PyTorchFit, what_is_shown_fits_the_card_as_a_whole_beside_a_margin) {
  const ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-360M");
  const Target target = target_with(int64_t{1} << 40);
  for (const int64_t gibibytes : {3, 5, 8}) {
    PyTorchEngine engine(model, target, pytorch_side_with(gibibytes << 30, model));
    PyTorchSearch search{.fixed = {}, .can_say = {}, .lines = 8};
    const FitReport report = fit_in_pytorch(model, recipe_for_pytorch({{"max_length", "2048"}}), search, engine);
    ASSERT_FALSE(report.front.empty()) << gibibytes;
    for (const FitChoice& choice : report.front) {
      eager::Target card = engine.side().card;
      const eager::Plan plan = eager::estimate(model, engine.side().setup(choice.recipe), engine.side().stack, card);
      EXPECT_TRUE(plan.fits);
      EXPECT_EQ(plan.device_high_bytes, choice.peak_bytes);
      const double with_margin = static_cast<double>(plan.reserved_bytes) * (1 + kReservedMargin);
      EXPECT_LE(with_margin + static_cast<double>(card.context_most_bytes), static_cast<double>(card.memory_bytes));
      EXPECT_EQ(choice.recipe.batch * choice.recipe.accumulation, 4);
    }
  }
}

TEST(PyTorchFit, only_what_pytorchs_trainers_do_and_the_file_can_say_is_searched) {
  const ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  const Target target = target_with(int64_t{1} << 40);
  PyTorchEngine engine(model, target, pytorch_side_with(int64_t{2} << 30, model));
  PyTorchSearch search{.fixed = {}, .can_say = {}, .lines = 8};
  search.can_say = [](const Recipe& recipe) { return recipe.optim == Optimizer::adamw && recipe.gradient_checkpointing; };
  const Recipe asked = recipe_for_pytorch({{"method", "full"}});
  for (const FitChoice& choice : pytorch_space(model, asked, search)) {
    EXPECT_NE(choice.recipe.optim, Optimizer::adamw_bf16);
    EXPECT_FALSE(choice.recipe.optimizer_in_bwd);
    EXPECT_TRUE(choice.recipe.checkpoint_layers.empty());
    EXPECT_NO_THROW(engine.side().setup(choice.recipe));
  }
  for (const FitChoice& choice : fit_in_pytorch(model, asked, search, engine).front)
    EXPECT_TRUE(search.can_say(choice.recipe));
}

TEST(PyTorchFit, where_nothing_fits_the_least_is_told_and_the_card_that_would_take_it) {
  const ModelSpec model = *find_model("Qwen/Qwen2.5-1.5B");
  const Target target = target_with(int64_t{1} << 40);
  const Recipe asked = recipe_for_pytorch({{"method", "full"}, {"max_length", "1024"}});
  const PyTorchSearch search{.fixed = {"optim"}, .can_say = {}};
  PyTorchEngine engine(model, target, pytorch_side_with(int64_t{4} << 30, model));
  const FitReport report = fit_in_pytorch(model, asked, search, engine);
  EXPECT_TRUE(report.front.empty());
  ASSERT_TRUE(report.least.has_value());
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Judged& one : judge_all(model, asked, search, target)) least = std::min(least, one.bytes);
  EXPECT_EQ(report.least->peak_bytes, least);
  const Accelerator* card = engine.smallest_card(report.least->recipe);
  ASSERT_NE(card, nullptr);
  EXPECT_GT(card->usable_bytes, report.least->peak_bytes);
  PyTorchSide there = pytorch_side_with(0, model);
  there.card = pytorch_target(*card);
  PyTorchEngine on_card(model, target, there);
  EXPECT_FALSE(fit_in_pytorch(model, asked, search, on_card).front.empty());
  for (const Accelerator& smaller : accelerators())
    if (smaller.compute_capability >= 80 && smaller.usable_bytes < card->usable_bytes) {
      EXPECT_LT(smaller.usable_bytes, least + least / 20) << smaller.name;
    }
}

TEST(PyTorchFit, what_the_eager_model_does_not_cover_is_never_and_cards_are_refused_by_name) {
  const ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  const Target target = target_with(int64_t{1} << 40);
  PyTorchEngine engine(model, target, pytorch_side_with(int64_t{1} << 34, model));
  const Recipe some = recipe_for_pytorch({{"gradient_checkpointing", "true"}, {"checkpoint_layers", "0,1"}});
  EXPECT_EQ(engine.exactly(some).bytes, kNever);
  EXPECT_EQ(engine.about(some).bytes, kNever);
  EXPECT_EQ(engine.follow(some), nullptr);
  EXPECT_THROW(pytorch_target(*find_accelerator("T4")), Error);
  EXPECT_THROW(pytorch_target(*find_accelerator("MI300X")), Error);
}

TEST(PyTorchFit, a_few_layers_tell_what_tensors_of_the_whole_model_hold) {
  for (const char* name : {"HuggingFaceTB/SmolLM2-360M", "Qwen/Qwen2.5-7B"}) {
    const ModelSpec model = *find_model(name);
    const Target target = target_with(int64_t{1} << 40);
    PyTorchEngine engine(model, target, pytorch_side_with(kLargeCard, model));
    for (const auto& settings :
         std::vector<std::vector<Setting>>{{},
                                           {{"method", "full"}},
                                           {{"load_in_4bit", "true"}},
                                           {{"gradient_checkpointing", "true"}},
                                           {{"method", "full"}, {"gradient_checkpointing", "true"}}}) {
      const Recipe recipe = recipe_for_pytorch(settings);
      const auto about = static_cast<double>(engine.about_bytes(recipe) - engine.side().card.context_most_bytes);
      EXPECT_NEAR(about / static_cast<double>(engine.follow(recipe)->allocated_bytes), 1, 0.02) << name;
    }
  }
}

}  // namespace

}  // namespace snug::testing
