#include "run/process_memory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace snug {
namespace {

// KiB of code that /proc/self/smaps counts as resident.
int64_t resident_code() {
  std::ifstream maps("/proc/self/smaps");
  int64_t kib = 0;
  bool code = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(" r-xp ") != std::string::npos)
      code = line.find(" /") != std::string::npos;
    else if (line.find("kB") == std::string::npos && line.find('-') < 17)
      code = false;
    if (code && line.starts_with("Rss:")) kib += std::stoll(line.substr(4));
  }
  return kib;
}

TEST(ProcessMemory, code_that_was_run_is_given_back_and_read_again_when_it_is_run) {
  const auto words = [] {
    std::ostringstream text;
    text << 1.5 << " " << std::hex << 255;
    return text.str();
  };
  EXPECT_EQ(words(), "1.5 ff");
  const int64_t before = resident_code();
  give_back_code_pages();
  EXPECT_LT(resident_code(), before);
  EXPECT_EQ(words(), "1.5 ff");
}

}  // namespace
}  // namespace snug
