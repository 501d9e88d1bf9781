#include "torch/log_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace snug::torch_tests {

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  LogLines reader([&](const LogLine& line) { lines.emplace_back(line.text); });
  reader.feed(text);
  reader.finish();
  return lines;
}

}  // namespace

TEST(LogLines, EndInAnyOfTheThreeWays) {
  EXPECT_EQ(lines_of("a\nb\r\nc\rd"), (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(lines_of("a\r\n\r\nb\n"), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(lines_of(""), std::vector<std::string>{});
}

TEST(LogLines, LoseWhatIsNoText) {
  EXPECT_EQ(without_escapes("\x1b[1;31mred\x1b[0m"), "red");
  EXPECT_EQ(without_escapes("\\u001b[0;31mred\\x1b[0m"), "red");
  EXPECT_EQ(without_escapes("[0;31mred[0m, list[3] and [12]"), "red, list[3] and [12]");
  EXPECT_EQ(without_escapes("\x1b]0;title\x07text"), "text");
  EXPECT_EQ(without_escapes("\x1b]8;;http://x\x1b\\link"), "link");
  EXPECT_EQ(without_escapes(std::string("a\0b\x01\x7f\tc", 7)), "ab c");
  EXPECT_EQ(without_escapes("bad \xff byte"), "bad \xEF\xBF\xBD byte");
  EXPECT_EQ(without_escapes("\x1b["), "");
  EXPECT_EQ(without_escapes("\x1b"), "");
  EXPECT_EQ(without_escapes("C:\\users\\x033\\new"), "C:\\users\\x033\\new");
}

TEST(LogLines, LoseThePrefixesOfLaunchersAndLoggers) {
  const auto text = [](std::string_view line) { return std::string(without_prefix(line).text); };
  EXPECT_EQ(text("[rank12]: RuntimeError: x"), "RuntimeError: x");
  EXPECT_EQ(without_prefix("[rank12]: x").rank, 12);
  EXPECT_EQ(without_prefix("rank4]: x").rank, 4);
  EXPECT_EQ(without_prefix("[default3]:x").rank, 3);
  EXPECT_EQ(without_prefix("[1,7]<stderr>:x").rank, 7);
  EXPECT_EQ(text("2025-11-14T03:12:34.1234567Z E       error"), "   error");
  EXPECT_EQ(text("[2024-01-01 00:00:00,123] [ERROR] x"), "[ERROR] x");
  EXPECT_EQ(text("(RayTrainWorker pid=1, ip=10.0.0.1) [rank0]: x"), "x");
  EXPECT_EQ(text("(EngineCore_DP0 pid=7) ERROR 04-01 23:46:56 [core.py:160]     return f("), "    return f(");
  EXPECT_EQ(text("ERROR: x"), "ERROR: x");
  EXPECT_EQ(text("│ /data/train.py:12 in main     │"), "/data/train.py:12 in main");
  EXPECT_EQ(text("    loss.backward()"), "    loss.backward()");
  EXPECT_EQ(text("12 of 20 done"), "12 of 20 done");
  EXPECT_EQ(text("[enforce fail at x.cpp:1] y"), "[enforce fail at x.cpp:1] y");
  EXPECT_FALSE(without_prefix("rank: 4").rank);
}

TEST(LogLines, ThatAreTooLongComeInPartsCutAtASpace) {
  const std::string word = "0123456 ";
  std::string text;
  while (text.size() < 3 * kLongestLine) text += word;
  const auto lines = lines_of(text);
  EXPECT_GE(lines.size(), 3u);
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), kLongestLine);
    EXPECT_TRUE(line.ends_with("0123456")) << line.substr(line.size() - 9);
  }
}

}  // namespace snug::torch_tests
