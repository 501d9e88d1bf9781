#include "run/code_pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace snug {
namespace {

struct Code {
  std::string file;
  int64_t bytes = 0, resident = 0;
};

// The mappings of files' code, as /proc/self/smaps counts them.
std::vector<Code> mapped_code() {
  std::ifstream maps("/proc/self/smaps");
  std::vector<Code> found;
  bool code = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find(" kB") == std::string::npos && line.find("VmFlags") == std::string::npos) {
      const size_t file = line.find('/');
      code = line.find(" r-xp ") != std::string::npos && file != std::string::npos;
      if (code) found.push_back({.file = line.substr(file)});
    }
    if (code && line.starts_with("Size:")) found.back().bytes = std::stoll(line.substr(5)) << 10;
    if (code && line.starts_with("Rss:")) found.back().resident = std::stoll(line.substr(4)) << 10;
  }
  return found;
}

int64_t resident_code(const std::string& file = "") {
  int64_t sum = 0;
  for (const Code& code : mapped_code())
    if (code.file.find(file) != std::string::npos) sum += code.resident;
  return sum;
}

TEST(CodePages, code_that_was_run_is_given_back_and_read_again_when_it_is_run) {
  const auto words = [] {
    std::ostringstream text;
    text << 1.5 << " " << std::hex << 255;
    return text.str();
  };
  EXPECT_EQ(words(), "1.5 ff");
  const int64_t before = resident_code();
  shrink_code_pages();
  EXPECT_LT(resident_code(), before);
  EXPECT_EQ(words(), "1.5 ff");
}

// However the file lies in the page cache: written in one piece, its 8 MiB lie in pieces of up to 2.
TEST(CodePages, a_touch_maps_at_most_64_kibibytes_also_when_it_was_done_before) {
  constexpr size_t kBytes = size_t{8} << 20, kApart = size_t{1} << 20;
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("snug-code-" + std::to_string(getpid()));
  std::ofstream(path).write(std::string(kBytes, '\1').data(), kBytes);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
  close(fd);
  std::filesystem::remove(path);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no code is run from " << path.parent_path();
  for (int time = 0; time < 2; ++time) {
    shrink_code_pages();
    EXPECT_EQ(resident_code(path.filename()), 0);
    int sum = 0;
    for (size_t at = 5000; at < kBytes; at += kApart) sum += static_cast<volatile char*>(memory)[at];
    EXPECT_EQ(sum, 8);
    EXPECT_GT(resident_code(path.filename()), 0);
    EXPECT_LE(resident_code(path.filename()), 8 * (64 << 10));
  }
  munmap(memory, kBytes);
}

}  // namespace
}  // namespace snug
