#include "tokenizer/known_splits.h"

#include <array>

#include "tokenizer/mixture.h"
#include "tokenizer/pattern.h"

namespace snug {
namespace {

constexpr std::array<const char*, 5> kExpressions = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

// Both ways for each expression: by hand and by PCRE2.
class Both {
 public:
  Both() {
    for (const char* expression : kExpressions) {
      hands_.push_back(find_known_split(expression));
      regexes_.emplace_back(expression, "test");
    }
  }

  // All matches in `text`, one after the other.
  void expect_same(std::string_view text) const {
    for (size_t i = 0; i < hands_.size(); ++i) {
      ASSERT_NE(hands_[i], nullptr) << kExpressions[i];
      for (size_t at = 0; at < text.size();) {
        const Regex::Match match = regexes_[i].find(text, at);
        ASSERT_TRUE(match.found);
        ASSERT_EQ(match.begin, at);
        ASSERT_EQ(match.end, hands_[i](text, at))
            << kExpressions[i] << "\nbyte " << at << " of " << testing::PrintToString(text);
        at = match.end;
      }
    }
  }

 private:
  std::vector<KnownSplit> hands_;
  std::vector<Regex> regexes_;
};

TEST(KnownSplits, AreWhatPcre2FindsAroundEveryCharacter) {
  const Both both;
  std::string text;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    // Where there are no characters, or private ones, the ends of the planes do.
    const bool empty = c >= 0x32400 && (c < 0xE0000 || c >= 0xE1000);
    if (empty && c % 0x10000 == 0x100) c |= 0xFF00U;
    std::string character;
    append_utf8(character, c);
    text.append("B").append(character).append("a ").append(character).append("B").append(character).append("'s");
    if (c >= 0x3400 && c % 16 != 0) continue;  // large blocks of the same kind
    for (const char* before : {"a", " ", "\n", "7", "'", "'l", "\u0301", "\u02B0Z", "?", "\t "})
      text.append(before).append(character);
    for (const char* after : {"a", "'S", "  ", "\n ", "7", "'", "e", "\u0301", "/"}) text.append(character).append(after);
    text.append(character).append(character).append(" ");
    if (c < 0x3400 && c % 64 != 63) continue;
    ASSERT_NO_FATAL_FAILURE(both.expect_same(text)) << std::hex << c;
    text.clear();
  }
}

TEST(KnownSplits, AreWhatPcre2FindsInAnyOrderOfTheirParts) {
  constexpr std::array<const char*, 40> kParts = {
      "'",      "s",      "S",      "t",      "re",     "RE",         "rE", "v",      "e",          "ll",
      "l",      "L",      "D",      "m",      "\u017F", " ",          "  ", "\t",     "\n",         "\r",
      "\r\n",   "\u00A0", "\u0085", "\u180E", "\u2028", "1",          "23", "\u0967", "\u00BD",     "\u01C5",
      "\u02B0", "中",     "é",      "Σ",      "\u0301", "\U000E0101", "/",  "?!",     "\U0001F600", "\U0002EBF0"};
  const Both both;
  uint64_t state = 1;
  for (int64_t i = 0; i < 60'000; ++i) {
    std::string text;
    for (uint64_t count = 1 + i % 12; count > 0; --count) {
      state = state * 0x5851F42D4C957F2DU + 1;
      text += kParts[(state >> 33) % kParts.size()];
    }
    ASSERT_NO_FATAL_FAILURE(both.expect_same(text));
  }
}

TEST(KnownSplits, AreWhatPcre2FindsInMixedText) {
  const Both both;
  test::Mixture mixture(3);
  for (int64_t i = 0; i < 200; ++i) ASSERT_NO_FATAL_FAILURE(both.expect_same(mixture.text(2000)));
}

TEST(KnownSplits, AreTakenForTheirVeryLettersOnly) {
  for (const std::string expression : kExpressions) {
    EXPECT_NE(find_known_split(expression), nullptr);
    EXPECT_EQ(find_known_split(expression + "|x"), nullptr);
    EXPECT_EQ(find_known_split(expression.substr(1)), nullptr);
  }
}

}  // namespace
}  // namespace snug
