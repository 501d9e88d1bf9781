#include "recipe/yaml.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "recipe/keys.h"

namespace snug {
namespace {

std::string refusal(const std::string& yaml) {
  try {
    parse_recipe_yaml(yaml, "r.yaml");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

bool yaml_says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos || (ADD_FAILURE() << message << " does not say " << part, false);
}

TEST(RecipeYaml, AUsersRecipeIsRead) {
  const RecipeFile file = parse_recipe_yaml(R"(# TRL
model_name_or_path: HuggingFaceTB/SmolLM2-1.7B
use_peft: true
lora_r: 16
lora_alpha: 32
lora_target_modules:
- q_proj
- v_proj
bf16: true
gradient_checkpointing: true
gradient_checkpointing_kwargs:
  use_reentrant: false
learning_rate: 2.0e-04
lr_scheduler_type: cosine
max_seq_length: 2048
max_steps: -1
report_to:
- tensorboard
- wandb
resume_from_checkpoint: null
warmup_ratio: 0.1
memory: 24GiB
)",
                                            "r.yaml");
  EXPECT_EQ(file.recipe.model, "HuggingFaceTB/SmolLM2-1.7B");
  EXPECT_EQ(file.recipe.method, Method::lora);
  EXPECT_EQ(file.recipe.lora.r, 16);
  EXPECT_EQ(file.recipe.lora.alpha, 32.0);
  EXPECT_EQ(file.recipe.lora.target_modules, (std::vector<std::string>{"q_proj", "v_proj"}));
  EXPECT_EQ(file.recipe.learning_rate, 2e-4);
  EXPECT_EQ(file.recipe.seq_len, 2048);
  EXPECT_EQ(file.recipe.memory_bytes, int64_t{24} << 30);
  EXPECT_EQ(file.passed_over, (std::vector<std::string>{"gradient_checkpointing_kwargs", "report_to"}));
  EXPECT_EQ(file.keys_set.front(), "model_name_or_path");
  EXPECT_EQ(file.keys_set.size(), 13U);
}

TEST(RecipeYaml, PatternsAreMappings) {
  const RecipeFile file =
      parse_recipe_yaml("rank_pattern: {q_proj: 16, layers.0.mlp: 4}\nalpha_pattern: {}\nuse_dora: true\n", "r.yaml");
  EXPECT_EQ(file.recipe.lora.rank_pattern, (PathPatterns<int64_t>{{"q_proj", 16}, {"layers.0.mlp", 4}}));
  EXPECT_TRUE(file.recipe.lora.use_dora);
  const RecipeFile again = parse_recipe_yaml(write_recipe_yaml(file.recipe), "again.yaml");
  EXPECT_EQ(again.recipe.lora.rank_pattern, file.recipe.lora.rank_pattern);
  yaml_says(refusal("rank_pattern: {q_proj: [1, 2]}"), "a mapping may hold plain values only");
  yaml_says(refusal("lora_r: {q_proj: 1}"), "must be a value or a list");
}

TEST(RecipeYaml, EmptyFilesAreTheDefaultRecipe) {
  for (const char* text : {"", "# nothing\n", "---\n", "\xEF\xBB\xBF"})
    EXPECT_TRUE(parse_recipe_yaml(text, "r").keys_set.empty());
}

TEST(RecipeYaml, ErrorsNameFileAndLine) {
  yaml_says(refusal("bf16: true\nbatch: 0\n"), "r.yaml:2: per_device_train_batch_size");
  yaml_says(refusal("bf16: true\nlora_rr: 4\n"), "r.yaml:2: there is no key 'lora_rr' (did you mean 'lora_r'?)");
  yaml_says(refusal("bf16: true\nfp8: true\n"), "r.yaml:2: fp8: fp8 is not supported yet");
}

TEST(RecipeYaml, DuplicateKeysAreRefusedAlsoUnderAliases) {
  yaml_says(refusal("bf16: true\nbf16: false\n"), "r.yaml:2: 'bf16' is given twice");
  yaml_says(refusal("lr: 1\nlearning_rate: 2\n"), "r.yaml:2: 'lr' and 'learning_rate' are the same key");
  yaml_says(refusal("wandb_name: a\nwandb_name: b\n"), "twice");
}

TEST(RecipeYaml, StructuresOtherThanFlatAreRefused) {
  yaml_says(refusal("- 1\n- 2\n"), "a recipe is a mapping");
  yaml_says(refusal("just text"), "a recipe is a mapping");
  yaml_says(refusal("lora_r:\n  value: 4\n"), "r.yaml:1: lora_r must be a value or a list");
  yaml_says(refusal("lora_r: [1, 2]\n"), "takes one value");
  yaml_says(refusal("lora_target_modules: [[q_proj]]\n"), "plain values only");
  yaml_says(refusal("? [a, b]\n: 1\n"), "a key must be plain text");
  yaml_says(refusal("a: 1\n---\nb: 2\n"), "several YAML documents");
  yaml_says(refusal("bf16:\n"), "bf16 has no value");
  yaml_says(refusal("adapter: null\n"), "adapter has no value");
}

TEST(RecipeYaml, BrokenYamlIsRefusedWithItsLine) {
  yaml_says(refusal("bf16: true\nlora: [1, 2\n"), "not valid YAML");
  yaml_says(refusal("a: b: c\n"), "r.yaml:1: not valid YAML");
  yaml_says(refusal("a: *nobody\n"), "not valid YAML");
  yaml_says(refusal("\t- x: y"), "r.yaml:1");
}

TEST(RecipeYaml, HostileFilesEndInOneCleanError) {
  EXPECT_NE(refusal("a: " + std::string(100000, '[')), "accepted");
  EXPECT_NE(refusal(std::string(100000, '{')), "accepted");
  EXPECT_NE(refusal(std::string(50000, '-')), "accepted");
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 60; ++i) {
    const std::string n = std::to_string(i), p = std::to_string(i - 1);
    bomb += "a" + n + ": &a" + n + " [*a" + p + ", *a" + p + "]\n";
  }
  yaml_says(refusal(bomb), "r.yaml:1: YAML anchors are not supported");
  for (const char* stray : {"]", "}", "a: b\n]", ",", "]\n---\n]", "- a\n]"}) EXPECT_NE(refusal(stray), "accepted") << stray;
  yaml_says(refusal("report_to: &a [*a, *a]\nlora_target_modules: *a\n"), "r.yaml");
  yaml_says(refusal("bf16: \xff\xfe\n"), "r.yaml:1: the text is not UTF-8");
  yaml_says(refusal(std::string("bf16: true\n\0x", 13)), "r.yaml:2: the text holds a control character");
  yaml_says(refusal("a: \xed\xa0\x80"), "not UTF-8");
  yaml_says(refusal(std::string((1 << 20) + 1, '#')), "larger than 1 MiB");
}

TEST(RecipeYaml, WhatIsWrittenReadsBackTheSame) {
  Recipe recipe;
  recipe.model = "dir with \"quotes\": and # signs";
  recipe.data = "données\n.jsonl";
  recipe.lora.target_modules = {"q_proj", "v_proj"};
  recipe.learning_rate = 0.1 + 0.2;
  recipe.bf16 = true;
  recipe.memory_bytes = 123456789;
  recipe.master_weights = false;
  recipe.gradient_checkpointing = true;
  recipe.checkpoint_layers = {0, 2, 5};
  recipe.max_steps = 7;
  recipe.seed = (uint64_t{1} << 63) - 1;
  recipe.resume_from_checkpoint = "true";
  recipe.lr_scheduler_type = Schedule::cosine;
  const std::string text = write_recipe_yaml(recipe);
  const RecipeFile back = parse_recipe_yaml(text, "r.yaml");
  EXPECT_TRUE(back.passed_over.empty());
  for (const Key& key : recipe_keys()) {
    if (key.get) {
      EXPECT_EQ(key.get(back.recipe), key.get(recipe)) << key.name;
    }
  }
  EXPECT_EQ(back.recipe.learning_rate, recipe.learning_rate);
  EXPECT_EQ(write_recipe_yaml(back.recipe), text);
}

TEST(RecipeYaml, MissingFilesAreNamed) {
  EXPECT_THROW(read_recipe_yaml("/nowhere.yaml"), Error);
  EXPECT_THROW(read_recipe_yaml("/"), Error);
}

}  // namespace
}  // namespace snug
