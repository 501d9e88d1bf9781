// Every page of help at 60 and 80 columns: the same words, in lines that fit.

#include "cli/help_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "cli/support_process.h"

namespace snug::cli_tests {

namespace {

size_t columns_of(const std::string& line) {
  return static_cast<size_t>(
      std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

TEST(HelpLayout, every_page_fits_and_keeps_its_words) {
  int pages = 0;
  for (const char* topic : {"", "plan", "fit", "explain", "measure", "watch", "probe", "data", "train", "generate", "merge",
                            "quantize", "export", "init", "models", "gpus", "pytorch"}) {
    const std::string page = run_program({"help", topic}).output;
    ASSERT_GT(page.size(), 100U) << topic;
    for (const int width : {60, 80, 120}) {
      const std::string text = cli::laid_out(page, width);
      EXPECT_EQ(words_of(text), words_of(page)) << topic;
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), static_cast<size_t>(width)) << line;
    }
    ++pages;
  }
  EXPECT_EQ(pages, 17);
}

TEST(HelpLayout, a_second_column_stays_one_where_there_is_room) {
  const std::string page =
      "snug x [keys]\n\nSome words that are\nfilled anew.\n  --a N      one two three\n             four\n  --bb       "
      "five\n";
  EXPECT_EQ(cli::laid_out(page, 28),
            "snug x [keys]\n\nSome words that are filled\nanew.\n  --a N      one two three\n             four\n  --bb      "
            " five\n");
  EXPECT_EQ(
      cli::laid_out(page, 20),
      "snug x [keys]\n\nSome words that are\nfilled anew.\n  --a N\n      one two three\n      four\n  --bb\n      five\n");
}

}  // namespace

}  // namespace snug::cli_tests
