#include "advise/foreign_fit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/catalogue.h"

namespace snug::testing {

namespace {

constexpr const char* kAxolotl = R"(base_model: HuggingFaceTB/SmolLM2-135M
adapter: lora
lora_r: 8
lora_alpha: 16
lora_target_linear: true
sequence_len: 512
micro_batch_size: 8
gradient_accumulation_steps: 2
optimizer: adamw_torch
bf16: true
datasets:
  - path: some/rows
    type: alpaca
)";

ForeignRecipe read(const std::string& text) {
  const dialects::Document document = dialects::read_document(text, "a.yaml");
  return read_foreign(document, recognise(document).value());
}

FitQuestion question_of(const ForeignRecipe& foreign, int64_t memory_bytes) {
  FitQuestion question{.model = *find_model("HuggingFaceTB/SmolLM2-135M"),
                       .target = {.threads = 1, .memory_bytes = memory_bytes, .runtime_bytes = 1 << 20},
                       .recipe = foreign.recipe,
                       .keys_set = foreign.keys_set};
  question.target.cost = nominal_cpu_rates(1);
  return question;
}

bool holds(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

TEST(ForeignFit, what_saves_memory_is_searched_and_what_is_trained_stays) {
  const ForeignRecipe foreign = read(kAxolotl);
  const FileInQuestion file{foreign, kAxolotl, "a.yaml"};
  FitQuestion question = question_of(foreign, int64_t{1} << 33);
  const std::vector<std::string> freed = free_keys(question, file, {});
  for (const char* key : {"per_device_train_batch_size", "gradient_accumulation_steps", "optim"}) {
    EXPECT_TRUE(holds(freed, key)) << key;
    EXPECT_FALSE(question.is_set(key)) << key;
  }
  for (const char* key : {"method", "lora_r", "lora_target_modules", "max_length"}) EXPECT_TRUE(question.is_set(key)) << key;
  ASSERT_TRUE(question.file.has_value());
  EXPECT_FALSE(question.file->method_asked);
}

TEST(ForeignFit, a_flag_that_says_the_same_is_kept) {
  const ForeignRecipe foreign = read(kAxolotl);
  const FileInQuestion file{foreign, kAxolotl, "a.yaml"};
  FitQuestion question = question_of(foreign, int64_t{1} << 33);
  const std::vector<std::string> freed = free_keys(question, file, {"optim", "method"});
  EXPECT_FALSE(holds(freed, "optim"));
  EXPECT_TRUE(question.is_set("optim"));
  EXPECT_TRUE(question.file->method_asked);
}

TEST(ForeignFit, the_best_recipe_is_a_change_of_the_file_that_says_it) {
  const ForeignRecipe foreign = read(kAxolotl);
  const FileInQuestion file{foreign, kAxolotl, "a.yaml"};
  FitQuestion question = question_of(foreign, int64_t{700} << 20);
  free_keys(question, file, {});
  const FitAnswer answer = recommend(std::move(question));
  ASSERT_TRUE(answer.fits());
  const auto patch = patch_of(file, answer);
  ASSERT_TRUE(patch.has_value());
  EXPECT_TRUE(patch->unsaid.empty());
  EXPECT_FALSE(patch->diff.empty());
  const Recipe changed = read(patch->text).recipe, &best = answer.report().front.front().recipe;
  EXPECT_EQ(changed.batch * changed.accumulation, 16);
  EXPECT_EQ(changed.batch, best.batch);
  EXPECT_EQ(changed.gradient_checkpointing, best.gradient_checkpointing);
  EXPECT_EQ(changed.lora.r, 8);
}

}  // namespace

}  // namespace snug::testing
