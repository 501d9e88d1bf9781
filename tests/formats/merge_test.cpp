#include "formats/merge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/bfloat16.h"
#include "base/float16.h"
#include "formats/elements.h"
#include "formats/safetensors_writer.h"
#include "formats/support_files.h"

namespace snug {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kMerge = SNUG_SOURCE_DIR "/tests/golden/merge";

std::vector<float> values_of(const Checkpoint& file, const std::string& name) {
  const TensorEntry& entry = file.at(name);
  std::vector<std::byte> bytes(static_cast<size_t>(entry.bytes));
  file.read(entry, 0, bytes);
  std::vector<float> values(static_cast<size_t>(entry.elements()));
  decode_elements(bytes, entry.dtype(), values);
  return values;
}

void write_f32(const fs::path& path, const std::vector<TensorToWrite>& tensors, float value) {
  SafetensorsWriter writer(path, tensors);
  for (const TensorEntry& entry : writer.order()) {
    const std::vector<float> values(static_cast<size_t>(entry.elements()), value);
    writer.write(std::as_bytes(std::span(values)));
  }
  writer.finish();
}

// A copy of a golden adapter or model that a test may spoil.
fs::path copy_of(const fs::path& directory, const fs::path& to) {
  fs::copy(directory, to, fs::copy_options::recursive);
  return to;
}

class GoldenMerge : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenMerge, GivesTheWeightsThatPeftComputes) {
  const Scratch scratch;
  const fs::path golden = kMerge / GetParam();
  const MergeSummary summary = merge_adapters(
      {.base = golden / "base", .adapters = {golden / "adapter"}, .output = scratch / "out", .shard_bytes = 1000});
  EXPECT_GT(summary.files, 1);
  const Checkpoint ours(scratch / "out"), theirs(golden / "expected.safetensors");
  ASSERT_EQ(ours.tensors().size(), theirs.tensors().size());
  for (const TensorEntry& entry : theirs.tensors()) {
    const std::vector<float> want = values_of(theirs, entry.name), have = values_of(ours, entry.name);
    ASSERT_EQ(ours.at(entry.name).dtype(), entry.dtype());
    ASSERT_EQ(have.size(), want.size()) << entry.name;
    const float most = entry.dtype() == DType::f32 ? 2e-6F : 0.0F;  // sums in another order; rounded to bf16 they are equal
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_LE(std::abs(have[i] - want[i]), most * std::max(1.0F, std::abs(want[i]))) << entry.name << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenMerge, ::testing::Values("plain", "rslora", "embedding", "dora"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(Merge, ATiedHeadThatComesApartIsSaidInTheConfiguration) {
  const Scratch scratch;
  const fs::path golden = kMerge / "embedding";
  const MergeSummary summary =
      merge_adapters({.base = golden / "base", .adapters = {golden / "adapter"}, .output = scratch / "out"});
  EXPECT_TRUE(summary.untied);
  EXPECT_EQ(json::parse(contents(scratch / "out/config.json"))["tie_word_embeddings"], false);
  const Checkpoint base(golden / "base"), out(scratch / "out");
  EXPECT_EQ(values_of(out, "lm_head.weight"), values_of(base, "model.embed_tokens.weight"));
  EXPECT_NE(values_of(out, "model.embed_tokens.weight"), values_of(base, "model.embed_tokens.weight"));
}

TEST(Merge, OtherFilesComeAlongAndWeightsAndCardsDoNot) {
  const Scratch scratch;
  const fs::path base = copy_of(kMerge / "plain/base", scratch / "base");
  put(base / "tokenizer.json", "{}");
  put(base / "special.txt", "kept");
  put(base / "pytorch_model.bin", "left");
  put(base / "README.md", "of the base");
  const MergeSummary summary =
      merge_adapters({.base = base, .adapters = {kMerge / "plain/adapter"}, .output = scratch / "out"});
  EXPECT_EQ(summary.files, 1);
  EXPECT_EQ(contents(scratch / "out/config.json"), contents(base / "config.json"));
  EXPECT_EQ(contents(scratch / "out/special.txt"), "kept");
  EXPECT_FALSE(fs::exists(scratch / "out/pytorch_model.bin"));
  EXPECT_FALSE(fs::exists(scratch / "out/model.safetensors.index.json"));
  EXPECT_TRUE(says(contents(scratch / "out/README.md"), "Merged model"));
}

TEST(Merge, ATokenizerThatCameWithTheAdapterIsTaken) {
  const Scratch scratch;
  const fs::path base = copy_of(kMerge / "plain/base", scratch / "base");
  const fs::path adapter = copy_of(kMerge / "plain/adapter", scratch / "adapter");
  put(base / "tokenizer.json", "old");
  put(adapter / "tokenizer.json", "new");
  EXPECT_TRUE(merge_adapters({.base = base, .adapters = {adapter}, .output = scratch / "out"}).adapter_tokenizer);
  EXPECT_EQ(contents(scratch / "out/tokenizer.json"), "new");
}

TEST(Merge, TwoAdaptersAreAppliedOneAfterTheOther) {
  const Scratch scratch;
  const fs::path plain = kMerge / "plain";
  const fs::path adapter = plain / "adapter";
  merge_adapters({.base = plain / "base", .adapters = {adapter}, .output = scratch / "once"});
  merge_adapters({.base = scratch / "once", .adapters = {adapter}, .output = scratch / "twice"});
  merge_adapters({.base = plain / "base",
                  .adapters = adapter_list({adapter.string() + "," + adapter.string()}),
                  .output = scratch / "both"});
  const Checkpoint both(scratch / "both"), twice(scratch / "twice");
  for (const TensorEntry& entry : twice.tensors()) {
    const std::vector<float> want = values_of(twice, entry.name), have = values_of(both, entry.name);
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(have[i], want[i], 2e-6) << entry.name;
  }
}

TEST(Merge, AnAdapterWithMoreTokensMakesTheVocabularyLarger) {
  const Scratch scratch;
  const fs::path adapter = scratch / "adapter";
  fs::create_directories(adapter);
  put(adapter / "adapter_config.json", R"({"peft_type": "LORA", "r": 2, "lora_alpha": 2, "target_modules": ["q_proj"]})");
  write_f32(adapter / "adapter_model.safetensors",
            {{"base_model.model.model.embed_tokens.weight", DType::f32, {12, 8}},
             {"base_model.model.lm_head.weight", DType::f32, {12, 8}}},
            0.5F);
  merge_adapters({.base = kMerge / "plain/base", .adapters = {adapter}, .output = scratch / "out"});
  EXPECT_EQ(json::parse(contents(scratch / "out/config.json"))["vocab_size"], 12);
  EXPECT_EQ(Checkpoint(scratch / "out").at("lm_head.weight").shape, (std::vector<int64_t>{12, 8}));
}

TEST(Merge, WhatIsInTheWayIsLeftAlone) {
  const Scratch scratch;
  const MergeRequest request{
      .base = kMerge / "plain/base", .adapters = {kMerge / "plain/adapter"}, .output = scratch / "out", .overwrite = true};
  fs::create_directories(scratch / "out");
  put(scratch / "out/thesis.txt", "mine");
  EXPECT_TRUE(says(refusal_of([&] { merge_adapters(request); }), "not a model"));
  MergeRequest careful = request;
  careful.overwrite = false;
  EXPECT_TRUE(says(refusal_of([&] { merge_adapters(careful); }), "is not empty"));
  EXPECT_EQ(contents(scratch / "out/thesis.txt"), "mine");
  fs::remove(scratch / "out/thesis.txt");
  merge_adapters(careful);
  merge_adapters(request);
  const fs::path base = copy_of(kMerge / "plain/base", scratch / "base");
  EXPECT_TRUE(says(refusal_of([&] {
                     merge_adapters(
                         {.base = base, .adapters = {kMerge / "plain/adapter"}, .output = base, .overwrite = true});
                   }),
                   "holds what is to be merged"));
}

struct Refused {
  const char* name;
  void (*spoil)(const fs::path& adapter);
  const char* says;
};

void edit(const fs::path& adapter, const char* key, const json& value) {
  json config = json::parse(contents(adapter / "adapter_config.json"));
  config[key] = value;
  put(adapter / "adapter_config.json", config.dump());
}

const Refused kRefused[] = {
    {"truncated",
     [](const fs::path& a) {
       fs::resize_file(a / "adapter_model.safetensors", fs::file_size(a / "adapter_model.safetensors") - 1);
     },
     "adapter_model.safetensors"},
    {"pickled", [](const fs::path& a) { fs::rename(a / "adapter_model.safetensors", a / "adapter_model.bin"); }, "pickle"},
    {"no_weights", [](const fs::path& a) { fs::remove(a / "adapter_model.safetensors"); }, "there is no adapter_model"},
    {"no_config", [](const fs::path& a) { fs::remove(a / "adapter_config.json"); }, "there is no adapter_config.json"},
    {"bias", [](const fs::path& a) { edit(a, "bias", "all"); }, "bias"},
    {"lora_bias", [](const fs::path& a) { edit(a, "lora_bias", true); }, "lora_bias"},
    {"pissa", [](const fs::path& a) { edit(a, "init_lora_weights", "pissa"); }, "pissa"},
    {"expression",
     [](const fs::path& a) {
       edit(a, "alpha_pattern", {{"layers.[0-9]", 3}});
     },
     "regular expression"},
    {"replication",
     [](const fs::path& a) {
       edit(a, "layer_replication", json::array({json::array({0, 1})}));
     },
     "layer_replication"},
    {"dora_without", [](const fs::path& a) { edit(a, "use_dora", true); }, "contradict"},
    {"ia3", [](const fs::path& a) { edit(a, "peft_type", "IA3"); }, "IA3"},
    {"mlx_dora",
     [](const fs::path& a) {
       put(a / "adapter_config.json", R"({"fine_tune_type": "dora", "lora_parameters": {"scale": 2.0}})");
     },
     "dora"},
    {"half",
     [](const fs::path& a) {
       write_f32(a / "adapter_model.safetensors",
                 {{"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", DType::f32, {2, 8}}}, 1);
     },
     "half of the adapter"},
    {"shape",
     [](const fs::path& a) {
       write_f32(a / "adapter_model.safetensors",
                 {{"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", DType::f32, {2, 9}},
                  {"base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight", DType::f32, {8, 2}}},
                 1);
     },
     "is for a weight [8, 9]"},
    {"ranks",
     [](const fs::path& a) {
       write_f32(a / "adapter_model.safetensors",
                 {{"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", DType::f32, {2, 8}},
                  {"base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight", DType::f32, {8, 3}}},
                 1);
     },
     "another rank"},
    {"elsewhere",
     [](const fs::path& a) {
       write_f32(a / "adapter_model.safetensors",
                 {{"base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight", DType::f32, {2, 8}},
                  {"base_model.model.model.layers.7.self_attn.q_proj.lora_B.weight", DType::f32, {8, 2}}},
                 1);
     },
     "which the model does not have"},
};

TEST(Merge, WhatCannotBeMergedIsRefusedByNameAndLeavesNothing) {
  for (const Refused& refused : kRefused) {
    const Scratch scratch;
    const fs::path adapter = copy_of(kMerge / "plain/adapter", scratch / "adapter");
    refused.spoil(adapter);
    const std::string message = refusal_of(
        [&] { merge_adapters({.base = kMerge / "plain/base", .adapters = {adapter}, .output = scratch / "out"}); });
    EXPECT_TRUE(says(message, refused.says)) << refused.name;
    EXPECT_FALSE(fs::exists(scratch / "out")) << refused.name;
  }
}

TEST(Merge, ABaseThatIsNotHereIsNamed) {
  const Scratch scratch;
  const fs::path adapter = copy_of(kMerge / "plain/adapter", scratch / "adapter");
  EXPECT_TRUE(says(refusal_of([&] { base_of(AdapterFile(adapter)); }), "--model"));
  edit(adapter, "base_model_name_or_path", "meta-llama/Llama-3.1-8B");
  EXPECT_TRUE(says(refusal_of([&] { base_of(AdapterFile(adapter)); }), "meta-llama/Llama-3.1-8B"));
  edit(adapter, "base_model_name_or_path", (kMerge / "plain/base").string());
  EXPECT_EQ(base_of(AdapterFile(adapter)), kMerge / "plain/base");
}

// ---- Halves

TEST(Float16, EveryValueSurvivesTheWayThroughFloat32) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = f16_to_f32(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
    } else {
      ASSERT_EQ(f32_to_f16(value), bits);
    }
  }
}

TEST(Float16, RoundsToNearestEvenAtEveryBoundary) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {  // between each value and the next, infinity as 65536
    const double low = static_cast<double>(f16_to_f32(static_cast<uint16_t>(bits)));
    const double high = bits == 0x7bff ? 65536.0 : static_cast<double>(f16_to_f32(static_cast<uint16_t>(bits + 1)));
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(f32_to_f16(middle), bits + (bits & 1U));
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0F)), bits);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9F)), bits + 1);
    ASSERT_EQ(f32_to_f16(-middle), 0x8000U + bits + (bits & 1U));
  }
}

}  // namespace
}  // namespace snug
