#include "plan/plan.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "model/catalogue.h"

namespace snug::testing {

namespace {

Target target_of(int64_t memory) { return {.threads = 2, .memory_bytes = memory, .runtime_bytes = 1 << 20}; }

Recipe lora_recipe() {
  Recipe recipe;
  recipe.bf16 = true;
  recipe.batch = 4;
  recipe.seq_len = 512;
  return recipe;
}

TEST(Plan, the_breakdown_and_runtime_sum_to_the_peak) {
  for (const char* name : {"HuggingFaceTB/SmolLM2-135M", "meta-llama/Llama-3.1-8B"}) {
    for (bool checkpointing : {false, true}) {
      Recipe recipe = lora_recipe();
      recipe.gradient_checkpointing = checkpointing;
      const Plan plan = make_plan(*find_model(name), recipe, target_of(int64_t{1} << 36));
      EXPECT_EQ(std::accumulate(plan.breakdown.begin(), plan.breakdown.end(), plan.runtime_bytes), plan.peak_bytes);
    }
  }
}

TEST(Plan, no_stage_is_above_the_peak_and_one_reaches_it) {
  const Plan plan = make_plan(*find_model("HuggingFaceTB/SmolLM2-135M"), lora_recipe(), target_of(int64_t{1} << 36));
  int64_t highest = 0;
  for (const auto& peak : plan.stage_peaks) highest = std::max(highest, peak.value_or(0));
  EXPECT_EQ(highest, plan.peak_bytes);
  EXPECT_FALSE(plan.stage_peaks[static_cast<size_t>(Stage::evaluate)].has_value());
}

TEST(Plan, weights_and_states_are_the_worked_bytes_of_the_parameters) {
  Recipe recipe = lora_recipe();
  recipe.method = Method::full;
  const ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  const Plan plan = make_plan(model, recipe, target_of(int64_t{1} << 36));
  const int64_t n = 134'515'008;
  EXPECT_EQ(plan.program.trainable_parameters(), n);
  EXPECT_EQ(plan.breakdown[static_cast<size_t>(Role::weight)], 2 * n);
  EXPECT_EQ(plan.breakdown[static_cast<size_t>(Role::gradient)], 4 * n);
  EXPECT_EQ(plan.breakdown[static_cast<size_t>(Role::optimizer)], 12 * n);  // master and two moments
}

TEST(Plan, paged_states_are_counted_on_disk_and_leave_a_window_in_the_arena) {
  Recipe recipe;
  recipe.method = Method::full;
  recipe.seq_len = 512;
  const ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  const Plan near = make_plan(model, recipe, target_of(int64_t{1} << 36));
  recipe.pages_states = true;
  const Plan paged = make_plan(model, recipe, target_of(int64_t{1} << 36));
  const int64_t n = 134'515'008;
  EXPECT_EQ(near.layout.of(Home::disk).bytes, 0);
  EXPECT_GE(paged.layout.of(Home::disk).bytes, 8 * n);
  EXPECT_LE(paged.layout.of(Home::disk).bytes, 8 * n + 4 * kFarAlignment);
  EXPECT_EQ(near.layout.device().run_bytes - paged.layout.device().run_bytes, 8 * n);
  EXPECT_LE(paged.peak_bytes, near.peak_bytes - 8 * n + (4 << 20));  // two states' windows of half a million elements
  EXPECT_EQ(std::accumulate(paged.breakdown.begin(), paged.breakdown.end(), paged.runtime_bytes), paged.peak_bytes);
  for (const LargeStorage& large : largest_at_peak(paged, 1000)) EXPECT_NE(large.role, Role::optimizer) << large.name;
}

TEST(Plan, pages_fit_where_their_home_has_room_to_the_byte) {
  Recipe recipe;
  recipe.method = Method::full;
  recipe.seq_len = 512;
  recipe.pages_states = true;
  const ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  Target target = target_of(int64_t{1} << 36);
  const Plan unknown = make_plan(model, recipe, target);
  EXPECT_TRUE(unknown.fits());
  std::optional<int64_t>& room = target.room[static_cast<size_t>(Home::disk)];
  room = unknown.layout.of(Home::disk).bytes;
  EXPECT_TRUE(make_plan(model, recipe, target).fits());
  room = *room - 1;
  const Plan short_of = make_plan(model, recipe, target);
  EXPECT_FALSE(short_of.fits());
  EXPECT_EQ(short_of.overfull_home(), Home::disk);
  EXPECT_EQ(estimate(model, recipe, target).overfull_home, Home::disk);
  recipe.pages_states = false;
  EXPECT_TRUE(make_plan(model, recipe, target).fits());
}

TEST(Plan, the_optimizer_in_backward_needs_the_gradient_of_one_weight_at_a_time) {
  Recipe recipe;
  recipe.method = Method::full;
  recipe.seq_len = 64;
  recipe.max_grad_norm = 0;
  ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  model.tied_embeddings = false;
  const Plan plain = make_plan(model, recipe, target_of(int64_t{1} << 36));
  recipe.optimizer_in_bwd = true;
  const Plan plan = make_plan(model, recipe, target_of(int64_t{1} << 36));
  const int64_t n = plan.program.trainable_parameters(), head = model.vocab_size * model.hidden_size;
  EXPECT_EQ(plain.layout.device().run_bytes - plan.layout.device().run_bytes, 4 * n);
  EXPECT_EQ(plan.breakdown[static_cast<size_t>(Role::gradient)], 4 * head);
  EXPECT_EQ(std::accumulate(plan.breakdown.begin(), plan.breakdown.end(), plan.runtime_bytes), plan.peak_bytes);
}

TEST(Plan, lora_trains_the_published_number_of_parameters) {
  Recipe recipe = lora_recipe();
  recipe.lora.r = 16;
  recipe.lora.target_modules = {"all-linear"};
  const Plan plan = make_plan(*find_model("meta-llama/Llama-3.1-8B"), recipe, target_of(int64_t{1} << 40));
  EXPECT_EQ(plan.program.trainable_parameters(), 41'943'040);  // as print_trainable_parameters() says
}

TEST(Plan, targets_that_the_model_lacks_are_refused_by_name) {
  Recipe recipe = lora_recipe();
  recipe.lora.target_modules = {"query_key_value"};
  try {
    make_plan(*find_model("HuggingFaceTB/SmolLM2-135M"), recipe, target_of(1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.problem().find("query_key_value"), std::string::npos);
  }
}

TEST(Plan, bytes_grow_linearly_with_layers_and_tokens) {
  Recipe recipe = lora_recipe();
  ModelSpec model = *find_model("HuggingFaceTB/SmolLM2-135M");
  const auto live = [&](int64_t layers) {
    model.layers = layers;
    return make_plan(model, recipe, target_of(int64_t{1} << 40)).layout.device().peak_live_bytes;
  };
  EXPECT_EQ(live(24) - live(16), live(16) - live(8));
}

}  // namespace

}  // namespace snug::testing
