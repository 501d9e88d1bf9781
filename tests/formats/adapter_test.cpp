#include "formats/adapter.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/checkpoint.h"
#include "formats/support_files.h"

namespace snug {
namespace {

using nlohmann::json;

json plain() {
  return json::parse(format_adapter_config({.base_model = "m", .r = 4, .lora_alpha = 8, .target_modules = {"q_proj"}}));
}

std::string refusal(const json& config) {
  return refusal_of([&] { parse_adapter_config(config.dump(), "adapter_config.json"); });
}

std::string refusal_with(const std::string& key, const json& value) {
  json config = plain();
  config[key] = value;
  return refusal(config);
}

TEST(Adapter, WhatPeftSavedIsRead) {
  const AdapterConfig config = read_adapter_config(kGolden / "adapter");
  EXPECT_EQ(config.r, 2);
  EXPECT_EQ(config.lora_alpha, 16.0);
  EXPECT_EQ(config.scale_of("model.layers.0.self_attn.q_proj", config.r), 8.0);
  EXPECT_EQ(config.target_modules, (std::vector<std::string>{"down_proj", "embed_tokens", "q_proj"}));
  EXPECT_EQ(config.modules_to_save, (std::vector<std::string>{"lm_head"}));
}

TEST(Adapter, NamesAreThoseOfPeft) {
  const Checkpoint tensors(kGolden / "adapter/adapter_model.safetensors");
  for (const char* name : {"model.layers.0.self_attn.q_proj", "model.layers.1.mlp.down_proj"}) {
    EXPECT_EQ(tensors.at(lora_a_name(name)).shape[0], 2);
    EXPECT_EQ(tensors.at(lora_b_name(name)).shape[1], 2);
  }
  EXPECT_EQ(tensors.at(lora_embedding_a_name("model.embed_tokens")).shape, (std::vector<int64_t>{2, 12}));
  EXPECT_EQ(tensors.at(lora_embedding_b_name("model.embed_tokens")).shape, (std::vector<int64_t>{8, 2}));
  EXPECT_EQ(tensors.at(saved_module_name("lm_head")).shape, (std::vector<int64_t>{12, 8}));
  for (const TensorEntry& entry : tensors.tensors()) EXPECT_TRUE(parse_adapter_tensor_name(entry.name)) << entry.name;
  EXPECT_EQ(parse_adapter_tensor_name(lora_b_name("a.b"))->module_path, "a.b");
  EXPECT_EQ(parse_adapter_tensor_name(lora_b_name("a.b"))->part, AdapterPart::lora_b);
  EXPECT_EQ(parse_adapter_tensor_name(saved_module_name("lm_head"))->part, AdapterPart::saved_module);
  EXPECT_FALSE(parse_adapter_tensor_name("model.layers.0.self_attn.q_proj.lora_a"));
}

TEST(Adapter, WhatIsWrittenIsSortedAndReadsBack) {
  const AdapterConfig config{
      .base_model = "m", .r = 16, .lora_alpha = 24.5, .target_modules = {"q_proj"}, .modules_to_save = {"lm_head"}};
  const std::string text = format_adapter_config(config);
  EXPECT_EQ(json::parse(text).dump(2) + "\n", text);  // nlohmann::json sorts its keys
  const AdapterConfig back = parse_adapter_config(text, "x");
  EXPECT_EQ(back.base_model, "m");
  EXPECT_EQ(back.r, 16);
  EXPECT_EQ(back.lora_alpha, 24.5);
  EXPECT_EQ(back.target_modules, config.target_modules);
  EXPECT_EQ(back.modules_to_save, config.modules_to_save);
  EXPECT_TRUE(json::parse(format_adapter_config({}))["lora_alpha"].is_number_integer());
}

TEST(Adapter, VariantsAreWrittenAsPeftWritesThem) {
  AdapterConfig config{.base_model = "m", .r = 4, .lora_alpha = 8, .lora_dropout = 0.05, .target_modules = {"q_proj"}};
  config.use_rslora = config.use_dora = true;
  config.rank_pattern = {{"q_proj", 16}, {"k_proj", 2}};
  config.alpha_pattern = {{"q_proj", 2.5}, {"layers.0.mlp", 3}};
  const std::string text = format_adapter_config(config);
  EXPECT_EQ(json::parse(text).dump(2) + "\n", text);  // patterns too are sorted
  const AdapterConfig back = parse_adapter_config(text, "x");
  EXPECT_EQ(back.lora_dropout, 0.05);
  EXPECT_TRUE(back.use_rslora && back.use_dora);
  EXPECT_EQ(back.rank_pattern, (PathPatterns<int64_t>{{"k_proj", 2}, {"q_proj", 16}}));
  EXPECT_EQ(back.alpha_pattern, (PathPatterns<double>{{"layers.0.mlp", 3}, {"q_proj", 2.5}}));
  EXPECT_TRUE(json::parse(text)["alpha_pattern"]["layers.0.mlp"].is_number_integer());
  EXPECT_EQ(back.scale_of("model.layers.3.self_attn.q_proj", 16), 2.5 / 4);
  EXPECT_EQ(parse_adapter_tensor_name(lora_magnitude_name("a.b"))->part, AdapterPart::magnitude);
}

TEST(Adapter, TargetsMatchWholePartsOfAPath) {
  const AdapterConfig config{.target_modules = {"q_proj", "layers.1.mlp.up_proj"}};
  EXPECT_TRUE(config.targets("model.layers.0.self_attn.q_proj"));
  EXPECT_TRUE(config.targets("model.layers.1.mlp.up_proj"));
  EXPECT_FALSE(config.targets("model.layers.11.mlp.up_proj"));
  EXPECT_FALSE(config.targets("model.layers.0.self_attn.eq_proj"));
}

TEST(Adapter, WhatWouldComputeSomethingElseIsRefusedByName) {
  EXPECT_EQ(refusal(plain()), "accepted");
  EXPECT_TRUE(says(refusal_with("target_modules", ".*q_proj"), "regular expression"));
  EXPECT_TRUE(
      says(refusal_with("rank_pattern", {{"layers.[0-9].q_proj", 4}}), "rank_pattern 'layers.[0-9].q_proj' is a reg"));
  EXPECT_TRUE(says(refusal_with("rank_pattern", {{"q_proj", 0}}), "rank_pattern"));
  EXPECT_TRUE(says(refusal_with("alpha_pattern", {{"q_proj", "4"}}), "alpha_pattern"));
  EXPECT_TRUE(says(refusal_with("bias", "all"), "bias"));
  EXPECT_TRUE(says(refusal_with("fan_in_fan_out", "yes"), "fan_in_fan_out"));
  EXPECT_TRUE(says(refusal_with("layers_to_transform", {0, 1}), "layers_to_transform"));
  EXPECT_TRUE(says(refusal_with("init_lora_weights", "pissa"), "init_lora_weights"));
  EXPECT_TRUE(says(refusal_with("peft_type", "IA3"), "peft_type 'IA3'"));
  EXPECT_TRUE(says(refusal_with("task_type", "SEQ_CLS"), "task_type"));
  EXPECT_TRUE(says(refusal_with("something_new", true), "something_new"));
  EXPECT_EQ(refusal_with("something_new", nullptr), "accepted");
  EXPECT_EQ(refusal_with("modules_to_save", nullptr), "accepted");
}

TEST(Adapter, MalformedConfigsAreRefused) {
  EXPECT_TRUE(says(refusal_with("r", 0), "r must be a whole number"));
  EXPECT_TRUE(says(refusal_with("r", 1.5), "r must be"));
  EXPECT_TRUE(says(refusal_with("lora_alpha", "8"), "lora_alpha must be a number"));
  EXPECT_TRUE(says(refusal_with("target_modules", {1}), "must be a string"));
  EXPECT_TRUE(says(refusal_with("target_modules", json::array()), "target_modules is empty"));
  EXPECT_TRUE(says(refusal(json::object()), "'peft_type' is missing"));
  EXPECT_TRUE(says(refusal({{"fine_tune_type", "lora"}, {"lora_parameters", {{"rank", 8}}}}), "mlx-lm"));
  Scratch scratch;
  EXPECT_TRUE(says(refusal_of([&] { read_adapter_config(scratch.path()); }), "no adapter_config.json"));
}

}  // namespace
}  // namespace snug
