#include "chat/checkpoint_template.h"

#include "chat/support_golden.h"

namespace snug::chat {
namespace {

using test::refusal;

TEST(CheckpointTemplate, TakesTheFileBesideBeforeTheField) {
  CheckpointTexts texts;
  EXPECT_FALSE(choose_template(texts, "m", false).has_value());
  texts.tokenizer_config =
      R"({"model_max_length": 1000000000000000019884624838656, "a": "\"12345678901234567890", "chat_template": "field"})";
  EXPECT_EQ(choose_template(texts, "m", false)->source, "field");
  EXPECT_EQ(choose_template(texts, "m", false)->where, "m/tokenizer_config.json: chat_template");
  texts.template_json = R"({"chat_template": "json"})";
  EXPECT_EQ(choose_template(texts, "m", false)->source, "json");
  texts.template_jinja = "jinja";
  EXPECT_EQ(choose_template(texts, "m", false)->source, "jinja");
}

TEST(CheckpointTemplate, TakesTheOneForToolsIfThereAreTools) {
  CheckpointTexts texts;
  texts.tokenizer_config =
      R"({"chat_template": [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}, {"name": "rag", "template": "r"}]})";
  EXPECT_EQ(choose_template(texts, "m", false)->source, "d");
  EXPECT_EQ(choose_template(texts, "m", true)->source, "t");
  texts.tokenizer_config = R"({"chat_template": [{"name": "rag", "template": "r"}]})";
  EXPECT_NE(refusal([&] { choose_template(texts, "m", true); }).find("none is the default"), std::string::npos);
  texts.tokenizer_config = R"({"chat_template": 5})";
  EXPECT_NE(refusal([&] { choose_template(texts, "m", true); }).find("must be text"), std::string::npos);
}

TEST(CheckpointTemplate, ReadsSpecialTokensInBothForms) {
  CheckpointTexts texts;
  texts.tokenizer_config = R"({"bos_token": null, "eos_token": {"content": "</s>", "special": true}, "pad_token": "<pad>"})";
  texts.special_tokens_map = R"({"bos_token": "<s>", "eos_token": "other"})";
  const Variables expected = {{"eos_token", "</s>"}, {"pad_token", "<pad>"}, {"bos_token", "<s>"}};
  EXPECT_EQ(read_special_tokens(texts, "m"), expected);
}

}  // namespace
}  // namespace snug::chat
