#include "advise/recommend.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/catalogue.h"
#include "recipe/keys.h"
#include "sanitized.h"

namespace snug::testing {

namespace {

constexpr int64_t kMiB = 1 << 20;

FitQuestion question_of(int64_t memory_bytes, const std::vector<Setting>& settings) {
  FitQuestion question{.model = *find_model("HuggingFaceTB/SmolLM2-135M"),
                       .target = {.threads = 1, .memory_bytes = memory_bytes, .runtime_bytes = kMiB}};
  question.target.cost = nominal_cpu_rates(1);
  for (const Setting& setting : settings) {
    apply(question.recipe, setting.key, setting.value);
    question.keys_set.push_back(setting.key);
  }
  return question;
}

// Under a sanitizer of 6 layers of 30: the others are more of the same code.
FitQuestion shorter(FitQuestion question) {
  if (kSanitized) question.model.layers = 6;
  return question;
}

bool list_holds(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

TEST(Recommend, what_was_left_open_is_assumed_and_said) {
  const FitAnswer answer = recommend(shorter(question_of(8192 * kMiB, {{"method", "lora"}})));
  ASSERT_TRUE(answer.fits());
  const Recipe& best = answer.report().front.front().recipe;
  EXPECT_EQ(best.batch * best.accumulation, 16);
  EXPECT_TRUE(best.bf16);
  for (const char* line : {"16 sequences a step", "bf16 true", "max_length 1024"})
    EXPECT_TRUE(list_holds(answer.assumed, line)) << line;
}

TEST(Recommend, what_was_said_stays) {
  const FitAnswer answer = recommend(shorter(question_of(
      8192 * kMiB, {{"method", "lora"}, {"fp16", "true"}, {"gradient_accumulation_steps", "3"}, {"max_length", "256"}})));
  ASSERT_TRUE(answer.fits());
  EXPECT_EQ(answer.methods.size(), 1U);
  EXPECT_TRUE(answer.assumed.empty());
  for (const FitChoice& choice : answer.report().front) {
    EXPECT_EQ(choice.recipe.batch * choice.recipe.accumulation, 3);
    EXPECT_TRUE(choice.recipe.fp16);
    EXPECT_EQ(choice.recipe.seq_len, 256);
  }
}

TEST(Recommend, lora_is_chosen_and_fewer_bits_only_where_sixteen_do_not_fit) {
  const FitAnswer roomy = recommend(question_of(16384 * kMiB, {{"max_length", "128"}}));
  ASSERT_EQ(roomy.methods.size(), 4U);
  EXPECT_EQ(roomy.methods[roomy.chosen].name, "LoRA");
  const std::vector<Setting> in_memory = {
      {"max_length", "128"}, {"offload_weights", "none"}, {"offload_activations", "none"}};
  const FitAnswer none = recommend(question_of(64 * kMiB, in_memory));
  const auto lora = std::ranges::find(none.methods, "LoRA", &MethodReport::name);
  ASSERT_TRUE(lora != none.methods.end() && lora->report.least.has_value());
  const FitAnswer tight = recommend(question_of(lora->report.least->peak_bytes - 1, in_memory));
  ASSERT_TRUE(tight.fits());
  EXPECT_NE(tight.methods[tight.chosen].name, "LoRA");
  EXPECT_NE(tight.methods[tight.chosen].name, "full");
}

TEST(Recommend, where_nothing_fits_the_cheapest_way_out_is_planned) {
  const FitQuestion question =
      question_of(1024 * kMiB, {{"method", "full"}, {"optim", "adamw_torch"}, {"bf16", "true"}, {"max_length", "512"}});
  const FitAnswer answer = recommend(question);
  EXPECT_FALSE(answer.fits());
  ASSERT_TRUE(answer.way_out.has_value());
  EXPECT_TRUE(answer.way_out->fits);
  EXPECT_LE(answer.way_out->peak_bytes, answer.budget_bytes);
  EXPECT_FALSE(answer.way_out->given_up.empty());
}

TEST(Recommend, rows_become_as_long_as_the_longest_example) {
  FitQuestion question = shorter(question_of(8192 * kMiB, {{"method", "lora"}}));
  std::vector<int64_t> counted_at;
  question.counts = [&](const Plan& plan) {
    counted_at.push_back(plan.program.seq_len);
    return CountedData{workload_of(plan, 100, 3000), "100 examples", 3000};
  };
  const FitAnswer answer = recommend(std::move(question));
  ASSERT_TRUE(answer.fits());
  EXPECT_EQ(answer.report().front.front().recipe.seq_len, 3008);  // a multiple of 64
  EXPECT_EQ(counted_at, (std::vector<int64_t>{1024, 3008}));
  EXPECT_EQ(answer.data, "100 examples");
  EXPECT_TRUE(run_cost(answer, answer.report().front.front()).steps.has_value());
}

}  // namespace

}  // namespace snug::testing
