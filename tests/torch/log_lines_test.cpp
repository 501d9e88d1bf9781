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

TEST(LogLines, LoseThePrefixesOfContainersAndOfLoggersBehindATime) {
  const auto text = [](std::string_view line) { return std::string(without_prefix(line).text); };
  EXPECT_EQ(text("trainer-1  |   File \"a.py\", line 1, in f"), "  File \"a.py\", line 1, in f");
  EXPECT_EQ(text("Nov 22 10:54:34 gpu01 python[123]:     main()"), "    main()");
  EXPECT_EQ(text("2025-03-04 05:06:07.123 | ERROR    | __main__:main:12 - boom"), "boom");
  EXPECT_EQ(text("2025-03-04 05:06:07,123 - ERROR - train -     f()"), "    f()");
  EXPECT_EQ(text("2025-03-04 05:06:07,123 - train - ERROR - boom"), "boom");
  EXPECT_EQ(text("2025-03-04 05:06:07,123 ERROR train: boom"), "boom");
  EXPECT_EQ(text("[2025-03-04 05:06:07,123: ERROR/MainProcess]     f()"), "    f()");
  EXPECT_EQ(text("[2025-03-04 05:06:07,123] [ERROR] [launch.py:325:main] boom"), "boom");
  EXPECT_EQ(text("2025-03-04T05:06:07.1Z stderr F     f()"), "    f()");
  EXPECT_EQ(text("vllm-1  | ERROR 11-18 18:07:28 engine.py:366]     f()"), "    f()");
  EXPECT_EQ(text("ERROR:root:boom"), "boom");
  EXPECT_EQ(text("[stderr] boom"), "boom");
  EXPECT_EQ(without_prefix("3: boom").rank, 3);
  EXPECT_EQ(text("3:     main()"), "    main()");
  EXPECT_EQ(text("train Run tests 2025-11-14T03:12:34.1234567Z     f()"), "    f()");
  EXPECT_EQ(text("mask | other"), "mask | other");
  EXPECT_EQ(text("Error: 3: x"), "Error: 3: x");
}

TEST(LogLines, OfMailsAndIssuesLoseTheirMarks) {
  EXPECT_EQ(lines_of("> Traceback\n>   File x\n>     f()\n>\n> Error\nplain\n>       pytest's\n"),
            (std::vector<std::string>{"Traceback", "  File x", "    f()", "", "Error", "plain", ">       pytest's"}));
  EXPECT_EQ(lines_of("> > a\n> >   b\n"), (std::vector<std::string>{"a", "  b"}));
  EXPECT_EQ(lines_of("File &quot;a&quot; &lt;module&gt; it&#39;s &amp;quot; & all"),
            (std::vector<std::string>{"File \"a\" <module> it's &quot; & all"}));
}

TEST(LogLines, InUtf16AreDecodedWhateverThePieces) {
  const std::string text(
      "\xff\xfe"
      "a\0\x02\x25 \0\x3d\xd8\x25\xde\r\0\n\0b\0",
      18);  // a, a box's edge, a sloth
  for (const size_t piece : {size_t{1}, size_t{3}, text.size()}) {
    std::vector<std::string> lines;
    LogLines reader([&](const LogLine& line) { lines.emplace_back(line.text); });
    for (size_t at = 0; at < text.size(); at += piece) reader.feed(std::string_view(text).substr(at, piece));
    reader.finish();
    EXPECT_EQ(lines, (std::vector<std::string>{"a\xE2\x94\x82 \xF0\x9F\x98\xA5", "b"})) << piece;
  }
}

TEST(LogLines, OfJsonAreTheTextThatItHolds) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(lines_of(R"({"log":"  File \"a\"\n","stream":"stderr","time":"now"})"), (Lines{"  File \"a\""}));
  EXPECT_EQ(lines_of(R"({"level":"error","exc":"one\ntwo \u00e9\n"})"), (Lines{"one", "two é"}));
  EXPECT_EQ(lines_of(R"({"cells":[{"outputs":[{"text":["a\n","b"]}],"x":"y"}]})"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of(R"({"a":"one","b":{"c":"two"}})"), (Lines{"one", "two"}));
  EXPECT_EQ(lines_of("   \"a\\n\",\n   \"b\"\n"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of("{'loss': 1.5}"), (Lines{"{'loss': 1.5}"}));
  EXPECT_EQ(lines_of(R"('Traceback (most recent call last):\n  File \"a\", line 1, in f\n')"),
            (Lines{"'Traceback (most recent call last):", "  File \"a\", line 1, in f", "'"}));
  const std::string file = R"(  File "C:\new\a.py", line 1, in f)";
  EXPECT_EQ(lines_of(file), Lines{file});
}

TEST(LogLines, OfJsonThatAreLongerThanALineMayBeStayWhole) {
  std::string text = R"({"log":")";
  for (int i = 0; i < 20000; ++i) text += "line\\n";
  const std::vector<std::string> lines = lines_of(text + "end\"}\nnext");
  ASSERT_EQ(lines.size(), 20002u);
  EXPECT_EQ(lines[0], "line");
  EXPECT_EQ(lines[19999], "line");
  EXPECT_EQ(lines[20000], "end");
  EXPECT_EQ(lines[20001], "next");
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
