// Changes written back: the diff is applied with patch(1), and the file read again.

#include "formats/support_files.h"
#include "recipe/dialects/changes.h"
#include "support_dialects.h"

namespace snug {
namespace {

using Changes = std::vector<RecipeChange>;

// The text after patch(1) has applied the diff to a copy of it.
std::string patched(const std::string& text, const std::string& diff) {
  const Scratch directory;
  put(directory / "recipe", text);
  put(directory / "diff", diff);
  const std::string command =
      "cd '" + directory.path().string() + "' && patch --quiet --fuzz=0 recipe < diff > /dev/null 2>&1";
  const int result = diff.empty() ? 0 : std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(result, 0) << diff;
  return text_of(directory / "recipe");
}

// Applies the changes by patch(1) and expects the file to read back as changed, and all else as before.
void expect_changed(const std::string& text, const std::string& where, const Changes& changes) {
  const ForeignRecipe before = foreign(text, where);
  const RecipePatch patch = change_foreign_recipe(text, where, changes);
  EXPECT_TRUE(patch.unsaid.empty()) << patch.unsaid.front().key;
  const std::string after = patched(text, patch.diff);
  EXPECT_EQ(after, patch.text);
  const ForeignRecipe read = foreign(after, where);
  Recipe wanted = before.recipe;
  for (const RecipeChange& change : changes) apply(wanted, change.key, change.value);
  for (const Key& key : recipe_keys())
    if (key.get && key.name != "lora_alpha" && key.name != "gradient_accumulation_steps") {
      EXPECT_EQ(key.get(read.recipe), key.get(wanted)) << key.name << "\n" << patch.diff;
    }
}

const Changes kUsual = {{"per_device_train_batch_size", "3"},
                        {"gradient_accumulation_steps", "24"},
                        {"gradient_checkpointing", "true"},
                        {"optim", "paged_adamw_8bit"},
                        {"max_length", "768"}};

TEST(RecipeChanges, EveryRealFileTakesTheUsualOnes) {
  const auto root = shared_recipes();
  if (root.empty()) GTEST_SKIP() << "shared/data/recipes is not here";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string where = entry.path().string();
    if (!entry.is_regular_file() || entry.path().extension() == ".txt" || where.ends_with("ms-swift/5.sh")) continue;
    SCOPED_TRACE(where);
    const std::string text = text_of(entry.path());
    expect_changed(text, where, kUsual);
    const RecipePatch patch = change_foreign_recipe(text, where, kUsual);
    EXPECT_EQ(foreign(patch.text, where).recipe.accumulation, 24);
    if (foreign(text, where).recipe.method == Method::lora && !foreign(text, where).recipe.quantize.in_8bit) {
      expect_changed(text, where, {{"load_in_4bit", "true"}});
      expect_changed(text, where, {{"load_in_4bit", "false"}});
    }
    expect_changed(text, where, {{"gradient_checkpointing", "false"}});
  }
}

TEST(RecipeChanges, OfAxolotlAreInItsOwnWordsOrderAndComments) {
  const std::string text =
      "base_model: a/b\n"
      "adapter: lora   # cheap\n"
      "load_in_4bit: false\n"
      "sequence_len: 2048\n"
      "\n"
      "# the batch\n"
      "micro_batch_size: 4 # fits?\n"
      "gradient_accumulation_steps: 4\n"
      "optimizer: adamw_torch\n"
      "gradient_checkpointing:\n"
      "datasets:\n"
      "  - path: x\n";
  const RecipePatch patch = change_foreign_recipe(text, "r.yml",
                                                  Changes{{"per_device_train_batch_size", "2"},
                                                          {"gradient_accumulation_steps", "8"},
                                                          {"load_in_4bit", "true"},
                                                          {"gradient_checkpointing", "true"},
                                                          {"optim", "adamw_8bit"},
                                                          {"bf16", "false"}});
  EXPECT_EQ(patch.diff,
            "--- r.yml\n+++ r.yml\n"
            "@@ -1,12 +1,13 @@\n"
            " base_model: a/b\n"
            "-adapter: lora   # cheap\n"
            "-load_in_4bit: false\n"
            "+adapter: qlora   # cheap\n"
            "+load_in_4bit: true\n"
            " sequence_len: 2048\n"
            " \n"
            " # the batch\n"
            "-micro_batch_size: 4 # fits?\n"
            "-gradient_accumulation_steps: 4\n"
            "-optimizer: adamw_torch\n"
            "-gradient_checkpointing:\n"
            "+micro_batch_size: 2 # fits?\n"
            "+gradient_accumulation_steps: 8\n"
            "+bf16: false\n"
            "+optimizer: adamw_bnb_8bit\n"
            "+gradient_checkpointing: true\n"
            " datasets:\n"
            "   - path: x\n");
  EXPECT_EQ(patched(text, patch.diff), patch.text);
}

TEST(RecipeChanges, OfTorchtuneNameItsComponents) {
  const std::string text =
      "model:\n  _component_: torchtune.models.llama3_2.lora_llama3_2_1b\n  lora_rank: 8\n"
      "tokenizer: {path: x, max_seq_len: null}\nbatch_size: 4\n"
      "optimizer:\n  _component_: torch.optim.AdamW\n  fused: True\n  lr: 3e-4\n"
      "enable_activation_checkpointing: False";
  const RecipePatch patch = change_foreign_recipe(text, "r.yaml",
                                                  Changes{{"load_in_4bit", "true"},
                                                          {"optim", "paged_adamw_8bit"},
                                                          {"gradient_checkpointing", "true"},
                                                          {"gradient_accumulation_steps", "2"},
                                                          {"load_in_8bit", "true"}});
  EXPECT_NE(patch.text.find("lora_llama3_2_1b"), std::string::npos);
  EXPECT_NE(patch.text.find("qlora_llama3_2_1b"), std::string::npos);
  EXPECT_NE(patch.text.find("bitsandbytes.optim.PagedAdamW8bit"), std::string::npos);
  EXPECT_EQ(patch.text.find("fused"), std::string::npos);
  EXPECT_NE(patch.text.find("enable_activation_checkpointing: True"), std::string::npos);
  EXPECT_NE(patch.text.find("batch_size: 4\ngradient_accumulation_steps: 2\n"), std::string::npos);
  ASSERT_EQ(patch.unsaid.size(), 1u);
  EXPECT_EQ(patch.unsaid[0].key, "load_in_8bit");
  EXPECT_EQ(patched(text, patch.diff), patch.text);
}

TEST(RecipeChanges, OfScriptsChangeFlagsInPlace) {
  const std::string text =
      "BATCH=4\nswift sft \\\n    --model a/b --train_type lora \\\n    --per_device_train_batch_size $BATCH \\\n"
      "    --gradient_checkpointing \\\n    --max_length=\"2048\" --quant_bits 4 --quant_method bnb \\\n    --dataset x\n";
  expect_changed(text, "r.sh",
                 {{"per_device_train_batch_size", "2"},
                  {"gradient_accumulation_steps", "8"},
                  {"max_length", "1024"},
                  {"gradient_checkpointing", "false"},
                  {"optim", "paged_adamw_8bit"},
                  {"load_in_4bit", "false"}});
  const RecipePatch patch = change_foreign_recipe(
      text, "r.sh", Changes{{"per_device_train_batch_size", "2"}, {"gradient_accumulation_steps", "8"}});
  EXPECT_NE(patch.text.find("    --per_device_train_batch_size 2 \\\n    --gradient_accumulation_steps 8 \\\n"),
            std::string::npos);
  expect_changed("tune run lora_finetune_single_device --config llama3_2/1B_lora_single_device batch_size=4 epochs=1\n",
                 "r.sh", {{"per_device_train_batch_size", "1"}, {"gradient_accumulation_steps", "4"}});
}

TEST(RecipeChanges, OfJson) {
  const std::string text =
      "{\n  \"model\": \"a/b\",\n  \"train_type\": \"lora\",\n  \"dataset\": [\"x\"],\n  \"max_length\": 2048,\n"
      "  \"per_device_train_batch_size\": 4,\n  \"quant_bits\": null\n}\n";
  expect_changed(text, "r.json",
                 {{"per_device_train_batch_size", "2"},
                  {"gradient_accumulation_steps", "8"},
                  {"load_in_4bit", "true"},
                  {"optim", "paged_adamw_8bit"}});
}

TEST(RecipeChanges, WhatHoldsAlreadyMakesNoDiff) {
  const std::string text = "base_model: a/b\nadapter: lora\nsequence_len: 64\n";
  EXPECT_TRUE(
      change_foreign_recipe(text, "r.yaml", Changes{{"max_length", "64"}, {"checkpoint_layers", "all"}}).diff.empty());
  const RecipePatch patch = change_foreign_recipe(text, "r.yaml", Changes{{"optim", "adamw_bf16_states"}});
  EXPECT_TRUE(patch.diff.empty());
  EXPECT_EQ(patch.unsaid.size(), 1u);
}

TEST(UnifiedDiff, KeepsPlacesFarApartInHunksOfTheirOwn) {
  std::string before, after;
  for (int i = 0; i < 40; ++i) {
    before += "line " + std::to_string(i) + "\n";
    after += i == 5 || i == 30 ? "changed " + std::to_string(i) + "\n" : "line " + std::to_string(i) + "\n";
  }
  const std::string diff = unified_diff(before, after, "f");
  EXPECT_NE(diff.find("@@ -3,7 +3,7 @@"), std::string::npos) << diff;
  EXPECT_NE(diff.find("@@ -28,7 +28,7 @@"), std::string::npos) << diff;
  EXPECT_EQ(patched(before, diff), after);
  EXPECT_EQ(patched("a\nb", unified_diff("a\nb", "a\nc", "f")), "a\nc");
}

// What one key of theirs moves along is written too.
TEST(RecipeChanges, LeaveTheRestAsItWas) {
  const std::string swift = "swift sft --model a/b --train_type lora --dataset d --max_length 64\n";
  expect_changed(swift, "run.sh", {{"per_device_train_batch_size", "4"}});
  EXPECT_EQ(foreign(change_foreign_recipe(swift, "run.sh", Changes{{"per_device_train_batch_size", "4"}}).text, "run.sh")
                .recipe.accumulation,
            16);  // its default would have become 4
  const std::string axolotl = "base_model: a/b\nsequence_len: 64\nadapter: lora\nmicro_batch_size: 4\nbatch_size: 32\n";
  expect_changed(axolotl, "r.yaml", {{"per_device_train_batch_size", "2"}});
}

TEST(RecipeChanges, OfMegatronAreOfTheWholeBatch) {
  const std::string text =
      "NPROC_PER_NODE=4 megatron sft \\\n    --model a/b \\\n    --tensor_model_parallel_size 2 \\\n    --micro_batch_size "
      "1 "
      "\\\n    --global_batch_size 8 \\\n    --max_length 64\n";
  const Changes changes = {
      {"per_device_train_batch_size", "2"}, {"gradient_accumulation_steps", "3"}, {"gradient_checkpointing", "true"}};
  const RecipePatch patch = change_foreign_recipe(text, "run.sh", changes);
  EXPECT_TRUE(patch.unsaid.empty());
  EXPECT_NE(patch.text.find("--global_batch_size 12"), std::string::npos) << patch.text;
  EXPECT_NE(patch.text.find("--recompute_granularity full"), std::string::npos) << patch.text;
  const ForeignRecipe read = foreign(patched(text, patch.diff), "run.sh");
  EXPECT_EQ(read.recipe.batch, 2);
  EXPECT_EQ(read.recipe.accumulation, 3);
  EXPECT_TRUE(read.recipe.gradient_checkpointing);
}

TEST(RecipeChanges, OfTheSecondLlamaFactoryAndAutoTrain) {
  expect_changed("model: a/b\ntrain_dataset: d\nmicro_batch_size: 2\n", "r.yaml",
                 {{"per_device_train_batch_size", "1"}, {"gradient_accumulation_steps", "8"}, {"max_length", "512"}});
  const std::string autotrain =
      "task: llm-sft\nbase_model: a/b\nparams:\n  batch_size: 2\n  peft: true\n  gradient_accumulation: 4\nhub:\n  token: "
      "x\n";
  expect_changed(autotrain, "r.yml",
                 {{"gradient_checkpointing", "false"}, {"load_in_4bit", "false"}, {"max_length", "512"}});
  expect_changed(autotrain, "r.yml", {{"optim", "adamw_8bit"}, {"per_device_train_batch_size", "1"}});
}

TEST(RecipeChanges, OfTorchtunesBaseByWhicheverKeySaysIt) {
  const std::string head = "epochs: 1\nmodel:\n  lora_rank: 8\n  _component_: torchtune.models.llama3.";
  expect_changed(head + "lora_llama3_8b\n  quantize_base: True\n", "r.yaml", {{"load_in_4bit", "false"}});
  expect_changed(head + "qlora_llama3_8b\n", "r.yaml", {{"load_in_4bit", "false"}});
  const RecipePatch dora = change_foreign_recipe(head + "qdora_llama3_8b\n", "r.yaml", Changes{{"load_in_4bit", "false"}});
  EXPECT_EQ(dora.unsaid.size(), 1U);
  EXPECT_TRUE(dora.diff.empty());
}

TEST(RecipeChanges, ThatMeanNothingThereAreTold) {
  const std::string full = "base_model: a/b\nsequence_len: 64\ndatasets: []\nmicro_batch_size: 2\n";
  const RecipePatch patch = change_foreign_recipe(full, "r.yaml", Changes{{"load_in_4bit", "true"}, {"max_length", "32"}});
  ASSERT_EQ(patch.unsaid.size(), 1U);
  EXPECT_EQ(patch.unsaid.front().key, "load_in_4bit");
  EXPECT_EQ(foreign(patch.text).recipe.seq_len, 32);
  const std::string fsdp =
      "base_model: a/b\nsequence_len: 64\nadapter: lora\nmicro_batch_size: 2\nfsdp_config:\n  activation_checkpointing: "
      "true\n";
  expect_changed(fsdp, "r.yaml", {{"gradient_checkpointing", "false"}});
}

}  // namespace
}  // namespace snug
