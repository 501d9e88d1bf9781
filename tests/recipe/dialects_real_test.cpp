// Real recipes (shared/data/recipes; see its SOURCE.txt): what each asks for was written down from reading the file.

#include "support_dialects.h"

namespace snug {
namespace {

struct Expected {
  const char* file;
  const char* dialect;
  const char* model;  // of a local path the last part
  const char* method;
  const char* bits;  // "4", "8", ""
  int64_t length;    // 0: the file sets none
  int64_t batch, accumulation;
  const char* optim;
  int64_t rank;  // 0: full
  bool checkpointing, packing;
  std::vector<std::string> touching = {}, unknown = {};
};

const std::vector<Expected>& expected() {
  static const std::vector<Expected> list = {
      {"axolotl/1.yaml", "axolotl", "NousResearch/Nous-Hermes-2-Mistral-7B-DPO", "lora", "4", 4096, 8, 2, "paged_adamw_8bit",
       32, true, true},
      {"axolotl/2.yaml", "axolotl", "mistralai/Mistral-7B-v0.1", "lora", "4", 4096, 8, 4, "paged_adamw_8bit", 64, true,
       true},
      {"axolotl/4.yaml", "axolotl", "teknium/OpenHermes-2.5-Mistral-7B", "lora", "8", 8192, 4, 2, "paged_adamw_8bit", 32,
       true, true},
      // Checkpointing by FSDP's own key.
      {"axolotl/6.yaml",
       "axolotl",
       "kakaocorp/kanana-1.5-2.1b-instruct-2505",
       "full",
       "",
       8192,
       8,
       8,
       "adamw_torch",
       0,
       true,
       false,
       {"fsdp", "fsdp_config"}},
      {"axolotl/8.yaml", "axolotl", "Qwen/Qwen2.5-7B-Instruct", "lora", "", 500, 16, 4, "adamw_8bit", 8, false, false},
      {"axolotl/11.yaml", "axolotl", "Qwen/CodeQwen1.5-7B-Chat", "lora", "8", 896, 8, 2, "adamw_8bit", 32, true, false},
      {"axolotl/13.yaml",
       "axolotl",
       "sft-qwen3-32b-boot",
       "full",
       "",
       8192,
       2,
       6,
       "adamw_torch",
       0,
       true,
       false,
       {"rl", "trl", "deepspeed"}},
      {"axolotl/15.yaml",
       "axolotl",
       "allenai/OLMoE-1B-7B-0924",
       "lora",
       "4",
       2048,
       1,
       4,
       "adamw_torch",
       8,
       true,
       true,
       {"plugins", "expert_offload", "quantize_moe_experts"}},
      {"llamafactory/1.yaml", "LLaMA-Factory", "qwythos-9b", "lora", "4", 2048, 1, 16, "adamw_torch", 16, true, false},
      {"llamafactory/3.yaml",
       "LLaMA-Factory",
       "path to base model",
       "lora",
       "",
       1024,
       1,
       8,
       "adamw_torch",
       8,
       true,
       false,
       {"use_badam", "badam_mode", "badam_switch_mode", "badam_switch_interval"}},
      {"llamafactory/5.yaml", "LLaMA-Factory", "Qwen3-4B-Instruct-2507", "lora", "", 2048, 4, 8, "adamw_torch", 8, true,
       false},
      {"llamafactory/7.yaml",
       "LLaMA-Factory",
       "meta-llama/Meta-Llama-3-8B-Instruct",
       "full",
       "",
       2048,
       1,
       1,
       "adamw_torch",
       0,
       true,
       false,
       {"use_galore", "galore_layerwise", "galore_target", "galore_rank", "galore_scale"}},
      {"ms-swift/1.yaml", "ms-swift", "./gemma3-270m", "lora", "", 1536, 1, 4, "adamw_torch", 32, true, false},
      {"ms-swift/3.json", "ms-swift", "google/gemma-3-270m", "lora", "", 4096, 1, 8, "adamw_torch", 16, true, false},
      // Its flags come from a program that it runs: all that holds is ms-swift's defaults.
      {"ms-swift/5.sh", "ms-swift", "", "lora", "", 0, 1, 16, "adamw_torch", 8, true, false},
      {"torchtune/1.yaml",
       "torchtune",
       "meta-llama/Llama-2-7b-hf",
       "lora",
       "4",
       0,
       1,
       8,
       "adamw_torch",
       8,
       true,
       false,
       {},
       {"val_split", "vals_per_epoch", "max_samples"}},
      {"torchtune/3.yaml", "torchtune", "meta-llama/Llama-3.2-1B-Instruct", "lora", "4", 0, 4, 8, "adamw_torch", 64, false,
       false},
      {"torchtune/5.yaml", "torchtune", "Qwen/Qwen2.5-0.5B-Instruct", "lora", "", 0, 2, 8, "adamw_torch", 32, false, false},
      {"torchtune/7.yaml",
       "torchtune",
       "meta-llama/Meta-Llama-3-8B-Instruct",
       "lora",
       "4",
       0,
       8,
       16,
       "adamw_torch",
       8,
       true,
       false,
       {"compile"}},
      {"torchtune/9.yaml", "torchtune", "meta-llama/Llama-3.2-1B-Instruct", "lora", "", 1026, 4, 4, "adamw_torch", 32, false,
       false},
      {"trl/1.yaml", "TRL", "open-r1/Qwen2.5-Math-7B-RoPE-300k", "full", "", 32768, 2, 8, "adamw_torch", 0, true, false},
      {"trl/3.yaml", "TRL", "mistralai/Mistral-7B-v0.1", "lora", "4", 2048, 4, 2, "adamw_torch", 16, true, false},
      {"trl/5.yaml", "TRL", "HuggingFaceTB/SmolLM2-1.7B", "full", "", 8192, 4, 4, "adamw_torch", 0, true, false},
      {"trl/7.yaml", "TRL", "google/gemma-7b", "full", "", 2048, 4, 4, "adamw_torch", 0, true, false},
      {"unsloth/1.yaml", "Unsloth", "unsloth/Llama-3.2-1B-Instruct-bnb-4bit", "lora", "4", 2048, 2, 1, "adamw_8bit", 32,
       true, false},
      {"unsloth/3.yaml", "Unsloth", "HuggingFaceTB/SmolLM-135M-Instruct", "lora", "", 512, 4, 1, "adamw_8bit", 8, false,
       false},
  };
  return list;
}

TEST(RealRecipes, MainFieldsAreAsTheFilesSay) {
  const auto root = shared_recipes();
  if (root.empty()) GTEST_SKIP() << "shared/data/recipes is not here";
  for (const Expected& e : expected()) {
    SCOPED_TRACE(e.file);
    const ForeignRecipe read = foreign(text_of(root / e.file), e.file);
    const Recipe& r = read.recipe;
    EXPECT_EQ(name_of(read.dialect), e.dialect);
    EXPECT_EQ(r.model.starts_with('/') ? std::filesystem::path(r.model).filename().string() : r.model, e.model);
    EXPECT_EQ(value_of(r, "method"), e.method);
    EXPECT_EQ(std::string(r.quantize.in_4bit ? "4" : "") + (r.quantize.in_8bit ? "8" : ""), e.bits);
    EXPECT_EQ(r.seq_len, e.length);
    EXPECT_EQ(r.batch, e.batch);
    EXPECT_EQ(r.accumulation, e.accumulation);
    EXPECT_EQ(value_of(r, "optim"), e.optim);
    if (e.rank > 0) {
      EXPECT_EQ(r.lora.r, e.rank);
    }
    EXPECT_EQ(r.gradient_checkpointing, e.checkpointing);
    EXPECT_EQ(r.packing, e.packing);
    EXPECT_TRUE(r.bf16);
    EXPECT_EQ(read.named(KeyFate::touches_memory), e.touching);
    EXPECT_EQ(read.named(KeyFate::unknown), e.unknown);
    EXPECT_NO_THROW(validate(r));
  }
}

TEST(RealRecipes, EveryFileThereIsIsRead) {
  const auto root = shared_recipes();
  if (root.empty()) GTEST_SKIP() << "shared/data/recipes is not here";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || entry.path().extension() == ".txt") continue;
    SCOPED_TRACE(entry.path().string());
    const ForeignRecipe read = foreign(text_of(entry.path()), entry.path().string());
    EXPECT_LE(read.named(KeyFate::unknown).size(), 3u);
    EXPECT_NO_THROW(validate(read.recipe));
  }
}

TEST(RealRecipes, WhatElseTheFilesName) {
  const auto root = shared_recipes();
  if (root.empty()) GTEST_SKIP() << "shared/data/recipes is not here";
  const auto read = [&](const char* file) { return foreign(text_of(root / file), file); };
  EXPECT_EQ(read("axolotl/13.yaml").sharding, Sharding::zero2);
  EXPECT_EQ(read("axolotl/13.yaml").stage, "grpo");
  EXPECT_EQ(read("axolotl/6.yaml").sharding, Sharding::fsdp);
  EXPECT_EQ(read("axolotl/11.yaml").eval_batch, 8);
  EXPECT_EQ(read("axolotl/1.yaml").recipe.lora.target_modules, std::vector<std::string>{"all-linear"});
  EXPECT_EQ(read("axolotl/1.yaml").recipe.lora.modules_to_save, (std::vector<std::string>{"embed_tokens", "lm_head"}));
  EXPECT_EQ(read("trl/3.yaml").data, std::vector<std::string>{"HuggingFaceH4/ultrachat_200k"});
  EXPECT_EQ(read("trl/3.yaml").eval_batch, 8);
  EXPECT_FALSE(read("trl/3.yaml").recipe.quantize.double_quant);  // use_bnb_nested_quant is False there
  EXPECT_EQ(read("torchtune/3.yaml").recipe.lora.target_modules,
            (std::vector<std::string>{"q_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}));
  EXPECT_EQ(read("torchtune/1.yaml").recipe.output_dir, "./llama2_7B/output");
  EXPECT_EQ(read("llamafactory/7.yaml").recipe.master_weights, std::optional(false));  // pure_bf16
  const ForeignRecipe unsloth = read("unsloth/1.yaml");
  EXPECT_EQ(unsloth.models.back(), "Llama-3.2-1B-Instruct-bnb-4bit");  // the catalogue knows such a copy
  EXPECT_EQ(read("ms-swift/5.sh").gpus, 1);
}

}  // namespace
}  // namespace snug
