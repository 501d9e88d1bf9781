#include "model/config.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/error.h"

namespace snug {
namespace {

// The fields of TinyLlama-1.1B's config.json, each as JSON text; a test changes one and looks what becomes of it.
using Fields = std::map<std::string, std::string>;

Fields tinyllama() {
  return {{"_name_or_path", "\"TinyLlama/TinyLlama-1.1B-Chat-v1.0\""},
          {"architectures", "[\"LlamaForCausalLM\"]"},
          {"attention_bias", "false"},
          {"attention_dropout", "0.0"},
          {"bos_token_id", "1"},
          {"eos_token_id", "2"},
          {"hidden_act", "\"silu\""},
          {"hidden_size", "2048"},
          {"initializer_range", "0.02"},
          {"intermediate_size", "5632"},
          {"max_position_embeddings", "2048"},
          {"model_type", "\"llama\""},
          {"num_attention_heads", "32"},
          {"num_hidden_layers", "22"},
          {"num_key_value_heads", "4"},
          {"pretraining_tp", "1"},
          {"rms_norm_eps", "1e-05"},
          {"rope_scaling", "null"},
          {"rope_theta", "10000.0"},
          {"tie_word_embeddings", "false"},
          {"torch_dtype", "\"bfloat16\""},
          {"transformers_version", "\"4.36.2\""},
          {"use_cache", "true"},
          {"vocab_size", "32000"}};
}

std::string json_of(const Fields& fields) {
  std::string text = "{";
  for (const auto& [name, value] : fields) text += (text.size() > 1 ? ", \"" : "\"") + name + "\": " + value;
  return text + "}";
}

Fields with(const std::string& name, const std::string& value) {
  Fields fields = tinyllama();
  fields[name] = value;
  return fields;
}

ModelSpec parse(const Fields& fields) { return parse_config(json_of(fields), "config.json"); }

std::string refusal(const std::string& json) {
  try {
    parse_config(json, "config.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal(const Fields& fields) { return refusal(json_of(fields)); }

::testing::AssertionResult says(const std::string& message, const std::string& part) {
  if (message.find(part) != std::string::npos && message.find("config.json") == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << message << "' does not say '" << part << "'";
}

TEST(Config, TinyLlamaIsReadAsPublished) {
  const ModelSpec spec = parse(tinyllama());
  EXPECT_EQ(spec.family, "llama");
  EXPECT_EQ(spec.architecture, "LlamaForCausalLM");
  EXPECT_EQ(spec.hidden_size, 2048);
  EXPECT_EQ(spec.intermediate_size, 5632);
  EXPECT_EQ(spec.vocab_size, 32000);
  EXPECT_EQ(spec.layers, 22);
  EXPECT_EQ(spec.heads, 32);
  EXPECT_EQ(spec.kv_heads, 4);
  EXPECT_EQ(spec.head_size, 64);
  EXPECT_EQ(spec.max_position, 2048);
  EXPECT_EQ(spec.norm_eps, 1e-5);
  EXPECT_EQ(spec.rope.theta, 10000.0);
  EXPECT_EQ(spec.rope.scaling, RopeScaling::none);
  EXPECT_FALSE(spec.tied_embeddings);
  EXPECT_EQ(spec.dtype, DType::bf16);
  EXPECT_EQ(spec.bos_token_id, 1);
  EXPECT_EQ(spec.eos_token_id, 2);
  EXPECT_EQ(spec.pad_token_id, -1);
}

TEST(Config, Llama31RopeScalingIsReadInBothSpellings) {
  const std::string factors =
      R"("factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3")";
  Fields older = with("rope_scaling", "{" + factors + "}");
  older["rope_theta"] = "500000.0";
  Fields newer = tinyllama();
  newer.erase("rope_theta");
  newer.erase("rope_scaling");
  newer["rope_parameters"] = "{" + factors + ", \"rope_theta\": 500000.0}";
  for (const Fields& fields : {older, newer}) {
    const Rope rope = parse(fields).rope;
    EXPECT_EQ(rope.scaling, RopeScaling::llama3);
    EXPECT_EQ(rope.theta, 500000.0);
    EXPECT_EQ(rope.factor, 8.0);
    EXPECT_EQ(rope.low_freq_factor, 1.0);
    EXPECT_EQ(rope.high_freq_factor, 4.0);
    EXPECT_EQ(rope.original_max_position, 8192);
  }
}

TEST(Config, LinearRopeScalingIsReadWithItsOldNameForTheType) {
  const Rope rope = parse(with("rope_scaling", R"({"type": "linear", "factor": 2})")).rope;
  EXPECT_EQ(rope.scaling, RopeScaling::linear);
  EXPECT_EQ(rope.factor, 2.0);
}

TEST(Config, RopeThatIsNotUnderstoodIsRefused) {
  EXPECT_TRUE(says(refusal(with("rope_scaling", R"({"rope_type": "dynamic", "factor": 4})")),
                   "rope type 'dynamic' is not supported yet"));
  EXPECT_TRUE(
      says(refusal(with("rope_scaling", R"({"rope_type": "linear", "factor": 2, "beta": 1})")), "rope_scaling.beta"));
  EXPECT_TRUE(says(refusal(with("rope_scaling", R"({"rope_type": "llama3", "factor": 8})")), "low_freq_factor is missing"));
  EXPECT_TRUE(says(refusal(with("rope_scaling", R"({"factor": 8})")), "rope_scaling.rope_type is missing"));
  EXPECT_TRUE(says(refusal(with("rope_scaling", R"({"rope_type": "linear", "type": "llama3", "factor": 8})")), "differ"));
  EXPECT_TRUE(says(refusal(with("rope_parameters", R"({"rope_type": "default", "rope_theta": 5})")), "differ"));
  EXPECT_TRUE(says(refusal(with("rope_scaling", "[1]")), "rope_scaling must be an object"));
  EXPECT_TRUE(says(refusal(with("rope_theta", "0")), "rope_theta"));
}

Fields mistral() {
  Fields fields = with("model_type", "\"mistral\"");
  fields["architectures"] = "[\"MistralForCausalLM\"]";
  fields["sliding_window"] = "4096";
  return fields;
}

TEST(Config, MistralIsReadWithItsSlidingWindow) {
  Fields fields = mistral();
  const ModelSpec spec = parse(fields);
  EXPECT_EQ(spec.family, "mistral");
  EXPECT_EQ(spec.architecture, "MistralForCausalLM");
  EXPECT_EQ(spec.sliding_window, 4096);
  EXPECT_EQ(parse_config(format_config(spec, DType::bf16), "config.json").sliding_window, 4096);
  fields["sliding_window"] = "null";
  EXPECT_EQ(parse(fields).sliding_window, 0);
  EXPECT_EQ(parse_config(format_config(parse(fields), DType::bf16), "config.json").sliding_window, 0);
  fields["sliding_window"] = "0";
  EXPECT_TRUE(says(refusal(fields), "sliding_window"));
}

TEST(Config, AbsentFieldsOfMistralTakeTheDefaultsOfTransformers) {
  Fields fields = mistral();
  for (const char* name : {"model_type", "num_key_value_heads", "max_position_embeddings", "sliding_window"})
    fields.erase(name);
  const ModelSpec spec = parse(fields);
  EXPECT_EQ(spec.family, "mistral");
  EXPECT_EQ(spec.kv_heads, 8);
  EXPECT_EQ(spec.max_position, 131072);
  EXPECT_EQ(spec.sliding_window, 4096);
  fields["num_key_value_heads"] = "null";
  EXPECT_EQ(parse(fields).kv_heads, 32);
}

TEST(Config, AFamilysNameAndArchitectureMustAgree) {
  EXPECT_TRUE(says(refusal(with("architectures", R"(["MistralForCausalLM"])")),
                   "'MistralForCausalLM' is not supported yet (supported with model_type llama: LlamaForCausalLM)"));
  EXPECT_TRUE(says(refusal(with("sliding_window", "4096")), "sliding_window"));
  Fields fields = with("architectures", "[]");
  fields.erase("model_type");
  EXPECT_TRUE(says(refusal(fields), "neither model_type nor architectures"));
}

TEST(Config, OtherFamiliesAreRefusedByName) {
  EXPECT_TRUE(
      says(refusal(with("model_type", "\"mamba\"")), "model_type 'mamba' is not supported yet (supported: llama, mistral"));
  EXPECT_TRUE(
      says(refusal(with("architectures", R"(["LlamaForSequenceClassification"])")), "LlamaForSequenceClassification"));
  EXPECT_TRUE(says(refusal("{}"), "neither model_type nor architectures"));
}

TEST(Config, UnknownFieldsAreRefusedUnlessNull) {
  EXPECT_TRUE(says(refusal(with("attn_logit_softcapping", "50.0")), "attn_logit_softcapping"));
  EXPECT_EQ(refusal(with("attn_logit_softcapping", "null")), "accepted");
  EXPECT_EQ(refusal(with("transformers.js_config", R"({"kv_cache_dtype": {"q4f16": "float16"}})")), "accepted");
}

TEST(Config, SwitchesThatMustBeOffAreRefusedWhenOn) {
  for (const std::string name : {"rope_interleaved", "is_decoder", "output_router_logits"}) {
    EXPECT_TRUE(says(refusal(with(name, "true")), name + " = true is not supported yet"));
    EXPECT_EQ(refusal(with(name, "false")), "accepted");
  }
  EXPECT_TRUE(says(refusal(with("attention_dropout", "0.1")), "attention_dropout"));
  EXPECT_TRUE(says(refusal(with("hidden_act", "\"gelu\"")), "hidden_act"));
  EXPECT_TRUE(says(refusal(with("pretraining_tp", "2")), "pretraining_tp"));
  EXPECT_TRUE(
      says(refusal(with("quantization_config", R"({"quant_method": "gptq"})")), "quant_method 'gptq' is not supported"));
}

TEST(Config, MissingFieldsTakeTheDefaultsOfTransformers) {
  Fields fields = tinyllama();
  for (const char* name : {"num_key_value_heads", "max_position_embeddings", "rms_norm_eps", "rope_theta", "torch_dtype"})
    fields.erase(name);
  const ModelSpec spec = parse(fields);
  EXPECT_EQ(spec.kv_heads, 32);
  EXPECT_EQ(spec.max_position, 2048);
  EXPECT_EQ(spec.norm_eps, 1e-6);
  EXPECT_EQ(spec.rope.theta, 10000.0);
  fields.erase("hidden_size");
  EXPECT_TRUE(says(refusal(fields), "hidden_size is missing"));
}

TEST(Config, HeadSizeMayDifferFromHiddenOverHeads) {
  EXPECT_EQ(parse(with("head_dim", "128")).head_size, 128);
  EXPECT_EQ(parse(with("head_dim", "null")).head_size, 64);
}

TEST(Config, SizesThatDoNotDivideAreRefused) {
  EXPECT_TRUE(says(refusal(with("num_attention_heads", "33")), "is not a multiple of num_attention_heads"));
  EXPECT_TRUE(says(refusal(with("num_key_value_heads", "5")), "is not a multiple of num_key_value_heads"));
  EXPECT_TRUE(says(refusal(with("head_dim", "65")), "odd"));
}

TEST(Config, SizesOutOfRangeAreRefused) {
  for (const char* bad : {"0", "-1", "2048.5", "\"2048\"", "true", "[]", "99999999999", "18446744073709551615", "1e400"}) {
    EXPECT_NE(refusal(with("hidden_size", bad)), "accepted") << bad;
  }
  Fields fields = tinyllama();
  for (const char* name : {"hidden_size", "intermediate_size", "vocab_size"}) fields[name] = "2147483646";
  fields["num_attention_heads"] = fields["num_key_value_heads"] = "1";
  fields["num_hidden_layers"] = "100000";
  EXPECT_TRUE(says(refusal(fields), "does not fit in 63 bits"));
  EXPECT_TRUE(says(refusal(with("rms_norm_eps", "0")), "rms_norm_eps"));
}

TEST(Config, TheFirstOfSeveralTokenIdsCounts) {
  EXPECT_EQ(parse(with("eos_token_id", "[128, 129]")).eos_token_id, 128);
  EXPECT_EQ(parse(with("eos_token_id", "[]")).eos_token_id, -1);
  EXPECT_EQ(parse(with("pad_token_id", "-1")).pad_token_id, -1);
  EXPECT_TRUE(says(refusal(with("eos_token_id", "32000")), "eos_token_id"));
}

TEST(Config, DuplicateKeysAreRefused) {
  std::string json = json_of(tinyllama());
  json.insert(1, "\"vocab_size\": 1, ");
  EXPECT_TRUE(says(refusal(json), "'vocab_size' stands there twice"));
}

TEST(Config, TextThatIsNotJsonIsRefused) {
  EXPECT_TRUE(says(refusal(""), "not valid JSON"));
  EXPECT_TRUE(says(refusal("{\"a\": "), "not valid JSON"));
  EXPECT_TRUE(says(refusal("[]"), "not an object"));
  EXPECT_TRUE(says(refusal("{\"a\": \"\xff\"}"), "not valid JSON"));
  EXPECT_TRUE(says(refusal(std::string(100000, '[')), "not valid JSON"));
}

TEST(Config, FilesOfTransformers5AreRead) {
  const ModelSpec spec = read_config(SNUG_SOURCE_DIR "/tests/golden/formats/sharded");
  EXPECT_EQ(spec.name, "sharded");
  EXPECT_EQ(spec.rope.scaling, RopeScaling::llama3);
  EXPECT_EQ(spec.head_size, 4);
  EXPECT_EQ(spec.eos_token_id, 2);
  EXPECT_TRUE(read_config(SNUG_SOURCE_DIR "/tests/golden/formats/tied/config.json").tied_embeddings);
}

TEST(Config, MissingFilesAreNamed) {
  EXPECT_THROW(read_config("/nowhere/config.json"), Error);
  EXPECT_THROW(read_config(SNUG_SOURCE_DIR "/tests"), Error);
}

}  // namespace
}  // namespace snug
