#include <array>
#include <set>

#include "tokenizer/encoder.h"
#include "tokenizer/mixture.h"
#include "tokenizer/streaming_decoder.h"
#include "tokenizer/tokenizer.h"

namespace snug {
namespace {

namespace dom = simdjson::dom;

std::vector<unsigned char> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

// Mixed text through `tokenizer`, held against the hashes of `row`.
void expect_hashes(const Tokenizer& tokenizer, dom::element row) {
  test::Mixture mixture(1);
  std::set<int64_t> skipped;
  for (const int64_t number : dom::array(row["skipped"])) skipped.insert(number);
  test::Fold special;
  test::Fold ids_fold;
  test::Fold spans_fold;
  test::Fold decoded;
  test::Fold plain;
  for (int64_t i = 0; i < int64_t(row["rows"]); ++i) {
    const std::string text = mixture.text(2000);
    if (skipped.contains(i)) continue;
    const std::vector<int32_t> without = tokenizer.encode(text, false);
    std::vector<int32_t> ids;
    std::vector<TextSpan> spans;
    tokenizer.encode_with_spans(text, false, ids, spans);
    ASSERT_EQ(ids, without);
    ASSERT_EQ(spans.size(), ids.size());
    special.add(tokenizer.encode(text, true));
    ids_fold.add(ids);
    for (const TextSpan& span : spans) spans_fold.add(std::array{span.begin, span.end});
    decoded.add(bytes_of(tokenizer.decode(ids)));
    plain.add(bytes_of(tokenizer.decode(ids, true)));
  }
  EXPECT_EQ(special.hex(), std::string_view(row["special"]));
  EXPECT_EQ(ids_fold.hex(), std::string_view(row["ids"]));
  EXPECT_EQ(decoded.hex(), std::string_view(row["decoded"]));
  EXPECT_EQ(plain.hex(), std::string_view(row["plain"]));
  dom::element known;
  if (row["spans"].get(known) == simdjson::SUCCESS) {
    EXPECT_EQ(spans_fold.hex(), std::string_view(known));
  }
}

// Calls `each` with every made style and its tokenizer.
template <typename F>
void for_each_style(const F& each) {
  dom::parser parser;
  const dom::element root = parser.load(test::golden("styles.json").string());
  for (const dom::element row : dom::array(root["made"])) {
    SCOPED_TRACE(std::string_view(row["name"]));
    std::string json = "{";
    json += std::string_view(row["file"]);
    json += ",\"model\":";
    json += std::string_view(root["models"].at(static_cast<size_t>(uint64_t(row["model"]))));
    json += '}';
    each(Tokenizer::parse(json, "style"), row);
  }
}

TEST(Styles, GiveIdsSpansAndTextOfHuggingFaceOnMixedText) {
  int64_t count = 0;
  for_each_style([&](const Tokenizer& tokenizer, dom::element row) {
    expect_hashes(tokenizer, row);
    ++count;
  });
  EXPECT_GT(count, 60);
}

TEST(Styles, GiveIdsSpansAndTextOfHuggingFaceOnAMegabyteInPublishedTokenizers) {
  if (!std::filesystem::exists(test::shared_tokenizers()))
    GTEST_SKIP() << "no published tokenizers at " << test::shared_tokenizers();
  dom::parser parser;
  const dom::element root = parser.load(test::golden("styles.json").string());
  for (const dom::element row : dom::array(root["published"])) {
    const std::string name{std::string_view(row["name"])};
    SCOPED_TRACE(name);
    expect_hashes(Tokenizer::load(test::shared_tokenizers() / name), row);
  }
}

TEST(Styles, EncodeTheSameByManyThreads) {
  for_each_style([](const Tokenizer& tokenizer, dom::element row) {
    if (std::string_view(row["name"]) != "llama3" && std::string_view(row["name"]) != "gemma") return;
    test::Mixture mixture(2);
    std::vector<std::string> texts;
    for (int i = 0; i < 40; ++i) texts.push_back(mixture.text(500, i % 4 == 0));
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    const auto batch = encode_batch(tokenizer, views, true, 3);
    ASSERT_EQ(batch.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(batch[i], tokenizer.encode(texts[i], true));
    EXPECT_TRUE(encode_batch(tokenizer, {}, true, 2).empty());
  });
}

TEST(Styles, SpansCoverTheTextInOrderAlsoWhereItIsNoUtf8) {
  for_each_style([](const Tokenizer& tokenizer, dom::element row) {
    const std::string_view name = row["name"];
    if (name != "llama3" && name != "llama2 legacy" && name != "gemma" && name != "metaspace first split True") return;
    test::Mixture mixture(3);
    for (int i = 0; i < 20; ++i) {
      const std::string text = "\xFF" + mixture.text(500, true);
      std::vector<int32_t> ids;
      std::vector<TextSpan> spans;
      tokenizer.encode_with_spans(text, false, ids, spans);
      int64_t covered = 0;
      for (const TextSpan& span : spans) {
        EXPECT_LE(span.begin, covered);
        EXPECT_LT(span.begin, span.end);
        covered = std::max(covered, span.end);
      }
      EXPECT_EQ(covered, static_cast<int64_t>(text.size()));
    }
  });
}

TEST(Styles, StreamTheSameTextAsDecodedAtOnce) {
  for_each_style([](const Tokenizer& tokenizer, dom::element row) {
    const std::string_view name = row["name"];
    if (name != "qwen" && name != "llama2 legacy" && name != "gemma" && name != "metaspace first split True") return;
    test::Mixture mixture(4);
    for (int i = 0; i < 10; ++i) {
      const auto ids = tokenizer.encode(mixture.text(400), false);
      StreamingDecoder decoder(tokenizer);
      std::string streamed;
      for (const int32_t id : ids) {
        const std::string fresh = decoder.push(id);
        EXPECT_TRUE(is_utf8(fresh));
        streamed += fresh;
      }
      streamed += decoder.finish();
      EXPECT_EQ(streamed, tokenizer.decode(ids, true));
    }
  });
}

}  // namespace
}  // namespace snug
