#include "tokenizer/regex.h"

#include "tokenizer/support.h"

namespace snug {
namespace {

TEST(Regex, ReadsWhiteSpaceAsUnicodeDoesAndNotAsPcre2Does) {
  const Regex space("\\s", "t");
  EXPECT_TRUE(space.find("a\u3000", 0).found);
  EXPECT_TRUE(space.find("a\u0085", 0).found);
  EXPECT_FALSE(space.find("a\u180e", 0).found);
  EXPECT_FALSE(Regex("[\\s]", "t").find("\u180e", 0).found);
  EXPECT_TRUE(Regex("[^\\s]", "t").find("\u180e", 0).found);
  EXPECT_TRUE(Regex("\\S", "t").find("\u180e", 0).found);
  EXPECT_TRUE(Regex("[\\s\\S]", "t").find("\u180e", 0).found);
}

TEST(Regex, ReadsScriptsWithoutTheirExtensions) {
  // U+3001 belongs to Han by Script_Extensions alone.
  EXPECT_FALSE(Regex("\\p{Han}", "t").find("\u3001", 0).found);
  EXPECT_TRUE(Regex("\\p{Han}", "t").find("\u4e00", 0).found);
  EXPECT_FALSE(Regex("\\P{Han}", "t").find("\u4e00", 0).found);
  EXPECT_TRUE(Regex("\\p{^Lu}", "t").find("a", 0).found);
}

TEST(Regex, RefusesByNameWhatTheDialectsReadDifferently) {
  for (const char* pattern :
       {"\\b",      "\\R",         "\\X",    "\\K",     "[a&&b]",      "[a[^b]]", "[a[b]-c]", "[a-[b]]",       "[\\W]",
        "[a&&[b]]", "[[:alpha:]]", "(?m:a)", "(?x)a",   "(*UTF)a",     "a{,3}",   "a{1,2}+",  "[]a]",          "[a",
        "a\\",      "\\p",         "\\pL",   "\\p{L&}", "\\x{110000}", "\\uD800", "\\1",      "(?<n>a)\\k<n>", "\\xFF",
        "a(?i)b|c", "(?P>x)",      "(",      "a**"}) {
    EXPECT_NE(test::refusal([&] { Regex(pattern, "where"); }), "") << pattern;
  }
}

TEST(Regex, ReadsSetsWithinSetsAndDifferences) {
  const Regex bloom(" ?[^(\\s|[.,!?])]+", "t");
  EXPECT_EQ(bloom.find("ab,c", 0).end, 2U);
  EXPECT_EQ(bloom.find(".(x)", 0).begin, 2U);
  const Regex other("[\\p{L}&&[^\\p{Han}]]+", "t");
  EXPECT_EQ(other.find("\u4e00ab\u4e00", 0).begin, 3U);
  EXPECT_EQ(other.find("\u4e00ab\u4e00", 0).end, 5U);
}

TEST(Regex, KnowsUnicode16AndOnigurumasWords) {
  EXPECT_TRUE(Regex("\\p{L}", "t").find("\U0002ebf0", 0).found);  // 15.1
  EXPECT_FALSE(Regex("[^\\p{Lo}]", "t").find("\U0002ebf0", 0).found);
  EXPECT_FALSE(Regex("\\P{L}", "t").find("\U0002ebf0", 0).found);
  EXPECT_TRUE(Regex("\\p{Han}", "t").find("\U000323af", 0).found);  // 15.0
  EXPECT_TRUE(Regex("\\w", "t").find("\u00bd", 0).found);           // alone, but not in a set
  EXPECT_FALSE(Regex("[\\w]", "t").find("\u00bd", 0).found);
  EXPECT_TRUE(Regex("\\h+", "t").find("fF0", 0).found);
}

TEST(Regex, GivesUpOnRunawayExpressionsWithAnError) {
  const Regex regex("(?:a+a+)+[bd]", "where");
  test::expect_mentions(test::refusal([&] { regex.find(std::string(300, 'a') + "c", 0); }), {"where", "fails on a text"});
}

}  // namespace
}  // namespace snug
