#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "cli/support_process.h"
#include "temporary_directory.h"

namespace snug::cli_tests {

namespace {

namespace fs = std::filesystem;

std::string page() { return run_program({"help", "man"}).output; }

TEST(ManPage, tells_every_command_and_every_key) {
  const std::string text = page();
  for (const char* heading : {".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH COMMANDS", ".SH KEYS", ".SH EXIT STATUS"})
    EXPECT_NE(text.find(heading), std::string::npos) << heading;
  for (const char* said : {".SS plan\n", ".SS measure\n", "\\fB\\-\\-max\\-memory\\fR", "\\fBlora_r\\fR = 8\n"})
    EXPECT_NE(text.find(said), std::string::npos) << said;
}

// As lintian asks: no warning on an 80-column terminal, with and without the characters of UTF-8.
TEST(ManPage, is_set_without_a_warning) {
  if (!fs::exists("/usr/bin/man")) GTEST_SKIP() << "man-db is not installed";
  const test::TemporaryDirectory work;
  std::ofstream(work / "snug.1") << page();
  for (const char* locale : {"C.UTF-8", "C"}) {
    const ProcessResult result = run_program(
        {"--warnings", "-l", (work / "snug.1").string()},
        {.program = "/usr/bin/man", .environment = {{"LC_ALL", locale}, {"MANWIDTH", "80"}, {"MANPAGER", "cat"}}});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.error, "") << locale;
    EXPECT_GT(std::count(result.output.begin(), result.output.end(), '\n'), 500) << locale;
  }
}

}  // namespace

}  // namespace snug::cli_tests
