#include "data/line_reader.h"

#include <vector>

#include "tokenizer/support.h"

namespace snug {
namespace {

using test::expect_mentions;
using test::refusal;
using Texts = std::vector<std::string>;

template <typename Reader>
Texts pieces_of(const std::string& text) {
  Reader reader(stream_of(text), "d.json");
  Texts pieces;
  while (const auto piece = reader.next()) pieces.emplace_back(*piece);
  return pieces;
}

TEST(LineReader, GivesEveryLineOnceWhateverItsLength) {
  const test::TemporaryDirectory directory;
  Texts lines;
  std::string all = "\xEF\xBB\xBF";
  for (const size_t length : {0U, 1U, 262'143U, 262'144U, 3U, 0U, 1'000'000U, 524'288U, 5U}) {
    lines.emplace_back(length, static_cast<char>('a' + lines.size()));
    all += lines.back() + "\n";
  }
  lines.emplace_back("last without an end");
  all += lines.back();
  LineReader reader(open_byte_stream(directory.write("lines", all)), "lines");
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto line = reader.next();
    ASSERT_TRUE(line);
    EXPECT_EQ(*line, lines[i]);
    EXPECT_EQ(reader.line_number(), static_cast<int64_t>(i) + 1);
    EXPECT_EQ(all.substr(static_cast<size_t>(reader.byte_offset()), lines[i].size()), lines[i]);
  }
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.next());
}

TEST(LineReader, PassesOverALineWithoutEndAndGoesOnBehindIt) {
  const std::string text = "\n" + std::string(size_t{65} << 20, 'x') + "\nafter";
  LineReader reader(stream_of(text), "long");
  EXPECT_EQ(*reader.next(), "");
  EXPECT_FALSE(reader.too_long());
  EXPECT_EQ(*reader.next(), "");
  EXPECT_TRUE(reader.too_long());
  EXPECT_EQ(reader.line_number(), 2);
  EXPECT_EQ(*reader.next(), "after");
  EXPECT_FALSE(reader.too_long());
  EXPECT_EQ(reader.line_number(), 3);
}

TEST(ArrayReader, GivesTheElementsOfOneArrayWithTheirLines) {
  const std::string text = "\xEF\xBB\xBF [\n {\"a\": \"],}{\\\"\"},\n\n [1, [2]],3 ,\"\\\\\"]\n";
  EXPECT_EQ(pieces_of<ArrayReader>(text), (Texts{R"({"a": "],}{\""})", "[1, [2]]", "3 ", R"("\\")"}));
  ArrayReader reader(stream_of(text), "d.json");
  reader.next();
  EXPECT_EQ(reader.line_number(), 2);
  reader.next();
  EXPECT_EQ(reader.line_number(), 4);
  EXPECT_EQ(text.substr(static_cast<size_t>(reader.byte_offset()), 4), "[1, ");
  EXPECT_EQ(pieces_of<ArrayReader>("[]"), Texts{});
}

TEST(ArrayReader, GivesEveryElementWhereverTheBufferEnds) {
  Texts elements;
  std::string text = "[";
  for (size_t i = 0; i < 3000; ++i) {
    elements.push_back("{\"t\":\"" + std::string(i * 37 % 900, i % 2 == 0 ? ']' : '\\') +
                       (i % 2 == 0 ? "" : std::string(i * 37 % 900, '\\')) + "\"}");
    text += (i > 0 ? ",\n " : "") + elements.back();
  }
  EXPECT_EQ(pieces_of<ArrayReader>(text + "]"), elements);
}

TEST(ArrayReader, RefusesArraysThatAreBroken) {
  const auto refused = [](const std::string& text) { return refusal([&] { pieces_of<ArrayReader>(text); }); };
  expect_mentions(refused("[{\"a\": 1}, {\"b\": 2"), {"d.json:1", "byte 11", "ends inside this row"});
  expect_mentions(refused("[\n{},"), {"d.json:2", "ends before its ']'"});
  expect_mentions(refused("["), {"ends before its ']'"});
  expect_mentions(refused("[1]\n2"), {"d.json:2", "something follows"});
  expect_mentions(refused("[{]}"), {"ends inside this row"});
}

TEST(ByteStream, RefusesFilesThatAreNotThere) {
  const test::TemporaryDirectory directory;
  expect_mentions(refusal([&] { open_byte_stream(directory.file("none")); }), {"none", "No such file"});
}

TEST(ByteStream, LooksAheadWithoutTaking) {
  const auto stream = stream_of("abcdef");
  std::array<char, 4> bytes{};
  const auto buffer = std::as_writable_bytes(std::span(bytes));
  EXPECT_EQ(stream->peek(2), "ab");
  EXPECT_EQ(stream->peek(3), "abc");
  EXPECT_EQ(stream->read(buffer.first(2)), 2U);
  EXPECT_EQ(stream->peek(9), "cdef");
  EXPECT_EQ(stream->read(buffer), 4U);
  EXPECT_EQ(std::string_view(bytes.data(), 4), "cdef");
  EXPECT_EQ(stream->read(buffer), 0U);
}

}  // namespace
}  // namespace snug
