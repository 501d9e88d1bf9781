#include "formats/generation_config.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace snug {

namespace {

using Tokens = std::vector<int32_t>;

TEST(GenerationDefaults, are_those_of_transformers_without_a_file) {
  const GenerationDefaults d = parse_generation_defaults("", "{}", "m");
  EXPECT_FALSE(d.do_sample);
  EXPECT_EQ(d.temperature, 1.0);
  EXPECT_EQ(d.top_p, 1.0);
  EXPECT_EQ(d.top_k, 50);
  EXPECT_TRUE(d.stop_tokens.empty());
}

TEST(GenerationDefaults, reads_what_llama_says) {
  const GenerationDefaults d = parse_generation_defaults(
      R"({"do_sample": true, "temperature": 0.6, "top_p": 0.9, "eos_token_id": [128001, 128009], "_from_model_config": true})",
      R"({"eos_token_id": 7})", "m");
  EXPECT_TRUE(d.do_sample);
  EXPECT_EQ(d.temperature, 0.6);
  EXPECT_EQ(d.top_p, 0.9);
  EXPECT_EQ(d.stop_tokens, (Tokens{128001, 128009}));
  EXPECT_TRUE(d.ignored.empty());
}

TEST(GenerationDefaults, takes_end_tokens_of_config_json_where_there_are_no_others) {
  EXPECT_EQ(parse_generation_defaults("{}", R"({"eos_token_id": 2})", "m").stop_tokens, Tokens{2});
  EXPECT_EQ(parse_generation_defaults("", R"({"eos_token_id": [1, 106]})", "m").stop_tokens, (Tokens{1, 106}));
  EXPECT_EQ(parse_generation_defaults("", R"({"text_config": {"eos_token_id": 5}})", "m").stop_tokens, Tokens{5});
  EXPECT_EQ(parse_generation_defaults(R"({"eos_token_id": null})", R"({"eos_token_id": 2})", "m").stop_tokens, Tokens{2});
}

TEST(GenerationDefaults, names_what_it_does_not_apply) {
  const GenerationDefaults d = parse_generation_defaults(
      R"({"repetition_penalty": 1.1, "min_p": 0, "num_beams": 1, "suppress_tokens": [3], "bad_words_ids": null})", "", "m");
  EXPECT_EQ(d.ignored, (std::vector<std::string>{"repetition_penalty 1.1", "suppress_tokens"}));
}

TEST(GenerationDefaults, refuses_bad_values_by_name) {
  for (const char* text : {R"({"temperature": -1})", R"({"top_p": 0})", R"({"top_p": 1.5})", R"({"top_k": "x"})",
                           R"({"eos_token_id": -2})", R"({"eos_token_id": [1, "a"]})", "[]", "{"})
    EXPECT_THROW(parse_generation_defaults(text, "", "m"), Error) << text;
}

}  // namespace

}  // namespace snug
