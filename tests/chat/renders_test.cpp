// Whole templates against transformers (tests/oracle/chat_renders.py): byte for byte by their sums, or an Error where it
// raises.

#include "chat/support_golden.h"

namespace snug::chat {
namespace {

using namespace snug::test;  // NOLINT(google-build-using-namespace): a test

// The sum of what the template makes of the conversation; "error: …" if it refuses.
std::string sum_of(const ChatTemplate& parsed, const Conversation& conversation, const Variables& special) {
  try {
    return fnv(parsed.render_text(conversation, special));
  } catch (const Error& error) {
    return std::string("error: ") + error.what();
  }
}

class Renders : public testing::TestWithParam<Value> {};

TEST_P(Renders, AreByteForByteThoseOfTransformers) {
  const std::string name = text_field(GetParam(), "template");
  const auto source = template_source(name);
  if (!source) GTEST_SKIP() << name << " is not here";
  ASSERT_EQ(fnv(*source), text_field(GetParam(), "source")) << name << " is another version";
  const ChatTemplate parsed = parse_with_clock(*source, name);
  const Variables special = variables_of(field(GetParam(), "special"));
  const Value conversations = golden_json("conversations.json");
  const auto& sums = items(field(GetParam(), "sums"));
  ASSERT_EQ(sums.size(), 2 * items(conversations).size());
  for (size_t i = 0; i < sums.size(); ++i) {
    const Value& row = items(conversations)[i / 2];
    const std::string sum = sum_of(parsed, conversation_of(row, i % 2 == 1), special);
    if (sums[i].is_string()) {
      EXPECT_EQ(sum, sums[i].view()) << name << ", " << text_field(row, "name");
    } else {
      EXPECT_TRUE(sum.starts_with("error: ")) << name << ", " << text_field(row, "name");
    }
  }
}

std::string test_name(const testing::TestParamInfo<Value>& info) {
  std::string name = text_field(info.param, "template");
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Templates, Renders, testing::ValuesIn(items(field(golden_json("renders.json"), "templates"))),
                         test_name);

}  // namespace
}  // namespace snug::chat
