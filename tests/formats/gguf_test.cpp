#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "formats/checkpoint.h"
#include "formats/gguf_export.h"
#include "formats/gguf_family.h"
#include "formats/gguf_tokenizer.h"
#include "formats/safetensors_writer.h"
#include "formats/sentencepiece_model.h"
#include "formats/support_files.h"
#include "formats/support_gguf.h"

namespace snug {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

uint32_t crc32(const std::string& bytes) {  // zlib's
  uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1U ? 0xedb88320U : 0U);
  }
  return ~crc;
}

// The weights of tests/oracle/gguf_check.py: known_weights.
void write_known_weights(const fs::path& path, const json& shapes) {
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, shape] : shapes.items()) tensors.push_back({name, DType::f32, shape.get<std::vector<int64_t>>()});
  SafetensorsWriter writer(path, tensors);
  for (const TensorEntry& entry : writer.order()) {
    const uint64_t seed = crc32(entry.name);
    std::vector<float> values(static_cast<size_t>(entry.elements()));
    for (uint64_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(((i * 2654435761U + seed) & 0xffffffffU) >> 16) / 65536.0F - 0.5F;
    writer.write(std::as_bytes(std::span(values)));
  }
  writer.finish();
}

const json& golden() {
  static const json all = json::parse(contents(SNUG_SOURCE_DIR "/tests/golden/gguf.json"));
  return all;
}

fs::path write_model(const Scratch& scratch, const std::string& family) {
  const fs::path model = scratch / family;
  fs::create_directories(model);
  put(model / "config.json", golden()[family]["config"].dump());
  write_known_weights(model / "model.safetensors", golden()[family]["weights"]);
  return model;
}

void expect_as_golden(const ReadGguf& file, const json& expected) {
  const std::map<std::string, uint32_t> types = {{"F32", 0}, {"F16", 1}, {"Q8_0", 8}, {"BF16", 30}};
  EXPECT_EQ(file.tensors.size(), expected["tensors"].size());
  for (const auto& [name, tensor] : expected["tensors"].items()) {
    ASSERT_TRUE(file.tensors.contains(name)) << name;
    const ReadGgufTensor& ours = file.tensors.at(name);
    EXPECT_EQ(ours.type, types.at(tensor["type"])) << name;
    EXPECT_EQ(ours.shape, tensor["shape"].get<std::vector<int64_t>>()) << name;
    EXPECT_EQ(crc32(ours.bytes), tensor["crc32"].get<uint32_t>()) << name;
  }
  for (const auto& [key, value] : expected["keys"].items()) {
    ASSERT_TRUE(file.keys.contains(key)) << key;
    if (value.is_number_float()) {
      EXPECT_FLOAT_EQ(file.keys.at(key).get<float>(), value.get<float>()) << key;
    } else {
      EXPECT_EQ(file.keys.at(key), value) << key;
    }
  }
}

class GoldenGguf : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenGguf, HoldsWhatTheConverterOfLlamaCppWrites) {
  const Scratch scratch;
  const std::string family = GetParam();
  const fs::path model = write_model(scratch, family);
  const auto type = find_gguf_type(golden()[family]["outtype"].get<std::string>());
  const GgufSummary summary = export_gguf({.model = model, .file = scratch / "out.gguf", .type = type});
  const ReadGguf file = GgufReader(scratch / "out.gguf").read();
  expect_as_golden(file, golden()[family]["expected"]);
  EXPECT_EQ(summary.bytes, static_cast<int64_t>(fs::file_size(scratch / "out.gguf")));
  EXPECT_EQ(file.keys.at("tokenizer.ggml.model"), "none");
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenGguf,
                         ::testing::Values("llama", "llama_llama3", "mixtral", "qwen2", "qwen3", "gemma2", "gemma3_text",
                                           "phi3", "gpt2"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(GgufAdapter, HoldsWhatTheConverterOfLlamaCppWrites) {
  const Scratch scratch;
  const fs::path model = write_model(scratch, "llama"), adapter = scratch / "adapter";
  fs::create_directories(adapter);
  put(adapter / "adapter_config.json", golden()["adapter"]["config"].dump());
  write_known_weights(adapter / "adapter_model.safetensors", golden()["adapter"]["weights"]);
  export_gguf_adapter(adapter, model, scratch / "out.gguf", GgufType::f32);
  const ReadGguf file = GgufReader(scratch / "out.gguf").read();
  json expected = golden()["adapter"]["expected"];
  EXPECT_EQ(file.keys.at("general.type"), "adapter");
  EXPECT_EQ(file.keys.at("adapter.type"), "lora");
  EXPECT_EQ(file.keys.at("adapter.lora.alpha"), 12.0F);
  expect_as_golden(file, expected);
}

TEST(Gguf, AMergedModelIsTheSameFileWhicheverWayItIsMade) {
  const Scratch scratch;
  const fs::path golden_merge = SNUG_SOURCE_DIR "/tests/golden/merge/rslora";
  fs::copy(golden_merge / "base", scratch / "base", fs::copy_options::recursive);
  export_gguf({.model = scratch / "base", .adapters = {golden_merge / "adapter"}, .file = scratch / "at-once.gguf"});
  const ReadGguf at_once = GgufReader(scratch / "at-once.gguf").read();
  EXPECT_EQ(at_once.tensors.at("blk.0.attn_q.weight").type, 30U);  // bf16 stays bf16
  const Checkpoint expected(golden_merge / "expected.safetensors");
  const TensorEntry& entry = expected.at("model.layers.0.mlp.up_proj.weight");
  std::vector<std::byte> bytes(static_cast<size_t>(entry.bytes));
  expected.read(entry, 0, bytes);
  EXPECT_EQ(at_once.tensors.at("blk.0.ffn_up.weight").bytes,
            std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

TEST(GgufQ8, ABlockOfZerosAndExtremesIsStoredAsTheReferenceDoes) {
  std::vector<float> values(64, 0.0F);
  values[32] = -127.0F;
  values[33] = 0.5F;  // half away from zero
  values[34] = -0.5F;
  values[35] = 1.49F;
  std::vector<std::byte> bytes(68);
  encode_gguf(values, GgufType::q8_0, bytes);
  for (size_t i = 0; i < 34; ++i) EXPECT_EQ(bytes[i], std::byte{0});
  EXPECT_EQ(bytes[34], std::byte{0x00});  // 1.0 in half precision
  EXPECT_EQ(bytes[35], std::byte{0x3c});
  EXPECT_EQ(static_cast<int8_t>(bytes[36]), -127);
  EXPECT_EQ(static_cast<int8_t>(bytes[37]), 1);
  EXPECT_EQ(static_cast<int8_t>(bytes[38]), -1);
  EXPECT_EQ(static_cast<int8_t>(bytes[39]), 1);
}

TEST(GgufWriter, TooManyAndTooFewBytesAndTwinsAreRefused) {
  const Scratch scratch;
  const std::vector<GgufTensor> one = {{"a", GgufType::f32, {2}}};
  EXPECT_TRUE(says(refusal_of([&] { GgufWriter(scratch / "x", {}, one).write(bytes_of("123456789")); }), "more bytes"));
  EXPECT_TRUE(says(refusal_of([&] { GgufWriter(scratch / "x", {}, one).finish(); }), "'a' are missing"));
  EXPECT_TRUE(says(refusal_of([&] { GgufWriter(scratch / "x", {}, {one[0], one[0]}); }), "twice"));
  EXPECT_TRUE(says(refusal_of([&] { GgufWriter(scratch / "x", {{"k", true}, {"k", true}}, one); }), "twice"));
  EXPECT_TRUE(says(refusal_of([&] { GgufWriter(scratch / "x", {}, {{"q", GgufType::q8_0, {31}}}); }), "blocks of 32"));
}

struct BadConfig {
  const char* family;
  const char* key;
  json value;
  const char* says;
};

TEST(GgufFamily, WhatLlamaCppWouldComputeOtherwiseIsRefusedByName) {
  const std::vector<BadConfig> cases = {
      {"llama", "model_type", "bert", "bert"},
      {"llama", "model_type", "gemma3", "gemma3"},
      {"llama", "hidden_act", "gelu", "gelu"},
      {"llama", "rope_parameters", {{"rope_type", "yarn"}, {"factor", 2.0}}, "yarn"},
      {"llama", "rope_parameters", {{"rope_type", "dynamic"}}, "dynamic"},
      {"llama", "partial_rotary_factor", 0.5, "partial_rotary_factor"},
      {"llama", "quantization_config", {{"quant_method", "gptq"}}, "quantized"},
      {"llama", "num_hidden_layers", -1, "num_hidden_layers"},
      {"llama", "vocab_size", 1e30, "vocab_size"},
      {"qwen2", "use_sliding_window", true, "use_sliding_window"},
      {"qwen3", "rope_parameters", {{"rope_type", "llama3"}}, "llama3"},
      {"gemma2", "query_pre_attn_scalar", 100, "query_pre_attn_scalar"},
      {"gemma2", "layer_types", json::array({"full_attention", "full_attention"}), "layer_types"},
      {"gemma2", "attn_logit_softcapping", nullptr, "attn_logit_softcapping"},
      {"gpt2", "n_inner", 7, "n_inner"},
      {"mixtral", "num_local_experts", 0, "num_local_experts"},
  };
  for (const BadConfig& bad : cases) {
    const Scratch scratch;
    json config = golden()[bad.family]["config"];
    config[bad.key] = bad.value;
    put(scratch / "config.json", config.dump());
    EXPECT_TRUE(says(refusal_of([&] { read_gguf_family(scratch.path()); }), bad.says)) << bad.family << " " << bad.key;
  }
}

TEST(GgufFamily, TensorsOfOtherModelsAreRefused) {
  const Scratch scratch;
  put(scratch / "config.json", golden()["llama"]["config"].dump());
  const GgufFamily family = read_gguf_family(scratch.path());
  EXPECT_EQ(family.place_of("model.layers.1.self_attn.k_proj.weight")->name, "blk.1.attn_k.weight");
  EXPECT_EQ(family.place_of("model.layers.1.self_attn.k_proj.weight")->heads, 2);
  EXPECT_FALSE(family.place_of("model.layers.0.self_attn.rotary_emb.inv_freq"));
  for (const char* name : {"model.layers.2.self_attn.k_proj.weight", "model.layers.x.self_attn.k_proj.weight", "weight", "",
                           "model.layers.0.mlp.experts.0.up_proj.weight", "model.layers.0.self_attn.k_proj.scales",
                           "model.layers.99999999999999999999.mlp.up_proj.weight", "vision.patch.weight"})
    EXPECT_TRUE(says(refusal_of([&] { family.place_of(name); }), "has no name in GGUF")) << name;
}

TEST(GgufExport, AHalfWrittenFileNeverStandsInItsPlace) {
  const Scratch scratch;
  const fs::path model = write_model(scratch, "llama");
  fs::resize_file(model / "model.safetensors", fs::file_size(model / "model.safetensors") - 1);
  EXPECT_TRUE(says(refusal_of([&] { export_gguf({.model = model, .file = scratch / "out.gguf"}); }), "cut short"));
  EXPECT_FALSE(fs::exists(scratch / "out.gguf"));
  EXPECT_TRUE(says(refusal_of([&] { export_gguf({.model = write_model(scratch, "qwen2"), .file = scratch.path()}); }),
                   "is a directory"));
}

// ---- Tokenizers

json byte_tokenizer() {
  return {{"added_tokens",
           {{{"id", 4}, {"content", "<|end|>"}, {"special", true}}, {{"id", 5}, {"content", "▁user"}, {"special", false}}}},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single", {{{"SpecialToken", {{"id", "<|end|>"}}}}, {{"Sequence", {{"id", "A"}}}}}}}},
          {"model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"Ġ", 3}}}, {"merges", {"a b"}}}}};
}

std::map<std::string, json> keys_of(const Scratch& scratch, const json& tokenizer, const std::string& pretokenizer = {}) {
  put(scratch / "config.json", golden()["llama"]["config"].dump());
  put(scratch / "tokenizer.json", tokenizer.dump());
  GgufWriter(scratch / "keys.gguf", gguf_tokenizer_keys(scratch.path(), read_gguf_family(scratch.path()), pretokenizer), {})
      .finish();
  return GgufReader(scratch / "keys.gguf").read().keys;
}

TEST(GgufTokenizer, ByteLevelTokensMergesAndSpecialTokens) {
  const Scratch scratch;
  put(scratch / "tokenizer_config.json",
      R"({"bos_token": {"content": "<|end|>"}, "model_max_length": 1000000000000000019884624838656, "chat_template": "{{ x }}"})");
  const auto keys = keys_of(scratch, byte_tokenizer());
  EXPECT_EQ(keys.at("tokenizer.ggml.model"), "gpt2");
  EXPECT_EQ(keys.at("tokenizer.ggml.pre"), "gpt-2");
  EXPECT_EQ(keys.at("tokenizer.ggml.tokens"),
            json({"a", "b", "ab", "Ġ", "<|end|>", " user", "[PAD6]", "[PAD7]", "[PAD8]", "[PAD9]"}));
  EXPECT_EQ(keys.at("tokenizer.ggml.token_type"), json({1, 1, 1, 1, 3, 4, 5, 5, 5, 5}));
  EXPECT_EQ(keys.at("tokenizer.ggml.merges"), json({"a b"}));
  EXPECT_EQ(keys.at("tokenizer.ggml.bos_token_id"), 4);
  EXPECT_EQ(keys.at("tokenizer.ggml.eos_token_id"), 2);  // from config.json
  EXPECT_EQ(keys.at("tokenizer.ggml.add_bos_token"), true);
  EXPECT_EQ(keys.at("tokenizer.chat_template"), "{{ x }}");
}

TEST(GgufTokenizer, SentencePieceScoresFollowTheMerges) {
  const Scratch scratch;
  json tokenizer = {{"added_tokens", {{{"id", 0}, {"content", "<unk>"}, {"special", true}}}},
                    {"normalizer", {{"type", "Prepend"}, {"prepend", "▁"}}},
                    {"model",
                     {{"type", "BPE"},
                      {"byte_fallback", true},
                      {"unk_token", "<unk>"},
                      {"vocab", {{"<unk>", 0}, {"<0x0A>", 1}, {"▁", 2}, {"a", 3}, {"b", 4}, {"ab", 5}, {"▁a", 6}}},
                      {"merges", json::array({json::array({"▁", "a"}), json::array({"a", "b"})})}}}};
  const auto keys = keys_of(scratch, tokenizer);
  EXPECT_EQ(keys.at("tokenizer.ggml.model"), "llama");
  EXPECT_EQ(keys.at("tokenizer.ggml.add_space_prefix"), true);
  EXPECT_EQ(keys.at("tokenizer.ggml.token_type"), json({2, 6, 1, 1, 1, 1, 1, 5, 5, 5}));
  const json scores = keys.at("tokenizer.ggml.scores");
  EXPECT_GT(scores[6].get<float>(), scores[5].get<float>());
  EXPECT_GT(scores[5].get<float>(), scores[3].get<float>());
}

TEST(GgufTokenizer, WhatLlamaCppMayNotKnowIsRefusedUnlessItIsNamed) {
  json tokenizer = byte_tokenizer();
  tokenizer["pre_tokenizer"] = {{"type", "Whitespace"}};
  const Scratch scratch;
  EXPECT_TRUE(says(refusal_of([&] { keys_of(scratch, tokenizer); }), "--pretokenizer"));
  EXPECT_EQ(keys_of(scratch, tokenizer, "falcon").at("tokenizer.ggml.pre"), "falcon");
  tokenizer = byte_tokenizer();
  tokenizer["model"]["vocab"]["z"] = 10;
  EXPECT_TRUE(says(refusal_of([&] { keys_of(scratch, tokenizer); }), "an id"));
  tokenizer = byte_tokenizer();
  tokenizer["added_tokens"][0]["id"] = 99;
  EXPECT_TRUE(says(refusal_of([&] { keys_of(scratch, tokenizer); }), "beyond the model's vocabulary"));
  tokenizer = byte_tokenizer();
  tokenizer["model"]["merges"] = {"a z"};
  EXPECT_TRUE(says(refusal_of([&] { keys_of(scratch, tokenizer); }), "no token"));
  tokenizer = byte_tokenizer();
  tokenizer["model"]["type"] = "Unigram";
  EXPECT_TRUE(says(refusal_of([&] { keys_of(scratch, tokenizer); }), "Unigram"));
}

// ---- SentencePiece's own file

std::string piece(const std::string& text, float score, char type) {
  std::string body = "\x0a" + std::string(1, static_cast<char>(text.size())) + text + "\x15";
  body.append(reinterpret_cast<const char*>(&score), 4);
  body += std::string("\x18") + type;
  return "\x0a" + std::string(1, static_cast<char>(body.size())) + body;
}

TEST(SentencePieceModel, PiecesScoresAndTheDummyPrefixAreRead) {
  const std::string file = piece("<unk>", 0, 2) + piece("ab", -1.5F, 1) + std::string("\x1a\x02\x18\x00", 4);
  const SentencePieceModel model = parse_sentencepiece_model(file, "tokenizer.model");
  ASSERT_EQ(model.pieces.size(), 2U);
  EXPECT_EQ(model.pieces[1].text, "ab");
  EXPECT_EQ(model.pieces[1].score, -1.5F);
  EXPECT_EQ(model.pieces[0].type, 2);
  EXPECT_FALSE(model.add_dummy_prefix);
  for (size_t cut = 1; cut < file.size(); ++cut) {  // every prefix is read or refused
    try {
      parse_sentencepiece_model(file.substr(0, cut), "tokenizer.model");
    } catch (const Error&) {
    }
  }
  EXPECT_TRUE(says(refusal_of([&] { parse_sentencepiece_model(file.substr(0, file.size() - 1), "m"); }), "cut short"));
  EXPECT_TRUE(says(refusal_of([&] { parse_sentencepiece_model("", "m"); }), "no pieces"));
  EXPECT_TRUE(says(refusal_of([&] { parse_sentencepiece_model("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "m"); }),
                   "cut short"));
}

}  // namespace
}  // namespace snug
