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
       {"\\h",         "\\w",      "\\b",    "\\R",     "\\X",         "\\K",     "[a&&b]", "[a[b]]",
        "[[:alpha:]]", "(?m:a)",   "(?x)a",  "(*UTF)a", "a{,3}",       "a{1,2}+", "[]a]",   "[a",
        "a\\",         "\\p",      "\\pL",   "\\p{L&}", "\\x{110000}", "\\uD800", "\\1",    "(?<n>a)\\k<n>",
        "\\xFF",       "a(?i)b|c", "(?P>x)", "(",       "a**"}) {
    EXPECT_NE(test::refusal([&] { Regex(pattern, "where"); }), "") << pattern;
  }
}

TEST(Regex, GivesUpOnRunawayExpressionsWithAnError) {
  const Regex regex("(?:a+a+)+[bd]", "where");
  test::expect_mentions(test::refusal([&] { regex.find(std::string(300, 'a') + "c", 0); }), {"where", "fails on a text"});
}

}  // namespace
}  // namespace snug
