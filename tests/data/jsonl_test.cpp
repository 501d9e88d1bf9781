#include "data/jsonl.h"

#include <vector>

#include "tokenizer/support.h"

namespace snug {
namespace {

using test::expect_mentions;
using test::refusal;

TEST(RowParser, FindsTheFormatFromTheFirstRowAndHoldsTheOthersToIt) {
  RowParser text("d.jsonl");
  EXPECT_EQ(text.parse(R"({"id": 7, "text": "caf\u00e9\n"})", 1)->text, "caf\u00e9\n");
  EXPECT_EQ(text.format(), RowFormat::text);
  expect_mentions(refusal([&] { text.parse(R"({"prompt": "a", "completion": "b"})", 2); }),
                  {"d.jsonl:2", "\"text\" is missing"});

  RowParser pair("d.jsonl");
  const auto row = pair.parse(R"({"completion": "b", "prompt": ""})", 1);
  EXPECT_EQ(row->prompt, "");
  EXPECT_EQ(row->completion, "b");
  EXPECT_EQ(pair.format(), RowFormat::prompt_completion);
}

TEST(RowParser, RefusesBadRowsNamingFileLineAndTheFix) {
  struct Case {
    const char *line, *what;
  };
  const Case cases[] = {{"{\"text\": \"a\"", "not valid JSON"},
                        {"\"text\"", "not a JSON object"},
                        {"[1]", "not a JSON object"},
                        {R"({"text": 1})", "\"text\" is not a string"},
                        {R"({"text": null})", "\"text\" is not a string"},
                        {R"({"text": ""})", "\"text\" is empty"},
                        {R"({"text": ["a"]})", "chat messages are not supported"},
                        {R"({"prompt": "a"})", "\"completion\" is missing"},
                        {R"({"completion": "a"})", "\"prompt\" is missing"},
                        {R"({"prompt": "a", "completion": ""})", "\"completion\" is empty"},
                        {R"({"messages": []})", "\"messages\" (chat)"},
                        {R"({"question": "a"})", "neither"},
                        {R"({"text": "a", "prompt": "b"})", "beside"},
                        {R"({"text": "\ud800"})", "not valid JSON"},
                        {"{\"text\": \"\xFF\"}", "not UTF-8"}};
  for (const Case& c : cases) {
    RowParser parser("d.jsonl");
    expect_mentions(refusal([&] { parser.parse(c.line, 17); }), {"d.jsonl:17: ", c.what, "("});
  }
}

TEST(RowParser, PassesBlankLinesOver) {
  RowParser parser("d.jsonl");
  EXPECT_FALSE(parser.parse("", 1));
  EXPECT_FALSE(parser.parse(" \t\r", 2));
  EXPECT_EQ(parser.format(), std::nullopt);
  EXPECT_EQ(parser.parse("{\"text\":\"a\"}\r", 3)->text, "a");
}

TEST(LineReader, GivesEveryLineOnceWhateverItsLength) {
  const test::TemporaryDirectory directory;
  std::vector<std::string> lines;
  std::string all = "\xEF\xBB\xBF";
  for (const size_t length : {0U, 1U, 262'143U, 262'144U, 3U, 0U, 1'000'000U, 524'288U, 5U}) {
    lines.emplace_back(length, static_cast<char>('a' + lines.size()));
    all += lines.back() + "\n";
  }
  lines.emplace_back("last without an end");
  LineReader reader(directory.write("lines", all + lines.back()));
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto line = reader.next();
    ASSERT_TRUE(line);
    EXPECT_EQ(*line, lines[i]);
    EXPECT_EQ(reader.line_number(), static_cast<int64_t>(i) + 1);
  }
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.next());
}

TEST(LineReader, RefusesFilesThatAreNotThereAndLinesWithoutEnd) {
  const test::TemporaryDirectory directory;
  expect_mentions(refusal([&] { LineReader reader(directory.file("none")); }), {"none", "No such file"});
  LineReader reader(directory.write("long", "\n" + std::string(size_t{65} << 20, 'x')));
  EXPECT_EQ(*reader.next(), "");
  expect_mentions(refusal([&] { reader.next(); }), {"long:2", "64 MiB"});
}

}  // namespace
}  // namespace snug
