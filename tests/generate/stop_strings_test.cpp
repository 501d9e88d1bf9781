#include "generate/stop_strings.h"

#include <gtest/gtest.h>

namespace snug {

namespace {

std::string shown(std::vector<std::string> stops, const std::vector<std::string>& pieces) {
  StopStrings s(std::move(stops));
  std::string text;
  for (const std::string& piece : pieces) text += s.push(piece) + "|";
  return text + s.finish() + (s.stopped() ? "!" : "");
}

TEST(StopStrings, hold_back_what_may_begin_one) {
  EXPECT_EQ(shown({}, {"ab", "c"}), "ab|c|");
  EXPECT_EQ(shown({"END"}, {"xE", "N", "x"}), "x||ENx|");
  EXPECT_EQ(shown({"END"}, {"xE", "N", "Dy", "z"}), "x||||!");
  EXPECT_EQ(shown({"END"}, {"xEN"}), "x|EN");
  EXPECT_EQ(shown({"aab"}, {"aa", "ab"}), "|a|!");
  EXPECT_EQ(shown({"\n\n", "b"}, {"x\n", "\ny"}), "x||!");
  EXPECT_EQ(shown({"later", "x"}, {"an x later"}), "an |!");
  EXPECT_EQ(shown({""}, {"abc"}), "abc|");
}

}  // namespace

}  // namespace snug
