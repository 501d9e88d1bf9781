#include "report/units.h"

#include <gtest/gtest.h>

namespace snug::testing {

namespace {

TEST(Units, counts_read_as_people_write_them) {
  EXPECT_EQ(count_text(1'235'000'000), "1.24 B");
  EXPECT_EQ(counted(1, "thread"), "1 thread");
  EXPECT_EQ(counted(2, "sequence"), "2 sequences");
}

TEST(Units, times_have_two_parts_at_most) {
  EXPECT_EQ(clock_text(3723), "1:02:03");
  EXPECT_EQ(clock_text(123), "2:03");
  EXPECT_EQ(seconds_text(3.21), "3.21 s");
  EXPECT_EQ(seconds_text(250), "4 min 10 s");
  EXPECT_EQ(seconds_text(7500), "2 h 05 min");
  EXPECT_EQ(seconds_text(std::nullopt), "–");
  EXPECT_EQ(dollars_text(0.48), "$0.48");
}

TEST(Units, wrapped_lines_go_on_below_their_beginning) {
  EXPECT_EQ(wrapped("one two three", 80, 4), "one two three");
  EXPECT_EQ(wrapped("one two three", 12, 4), "one two\n    three");
}

}  // namespace

}  // namespace snug::testing
