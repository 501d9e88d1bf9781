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
  int64_t resident = 0;  // bytes
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

// As code of a file that is of this test's making.
class MappedCode {
 public:
  static constexpr size_t kBytes = size_t{8} << 20;

  MappedCode() {
    std::ofstream(path_).write(std::string(kBytes, '\1').data(), kBytes);
    const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    memory_ = mmap(nullptr, kBytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    close(fd);
    std::filesystem::remove(path_);
  }
  ~MappedCode() {
    if (is_there()) munmap(memory_, kBytes);
  }
  MappedCode(const MappedCode&) = delete;
  MappedCode& operator=(const MappedCode&) = delete;

  bool is_there() const { return memory_ != MAP_FAILED; }  // not where no code may be run from temporary files
  volatile char* bytes() const { return static_cast<volatile char*>(memory_); }
  void protect(int rights) const { EXPECT_EQ(mprotect(memory_, kBytes, rights), 0); }
  int64_t resident() const { return resident_code(path_.filename()); }

 private:
  std::filesystem::path path_ = std::filesystem::temp_directory_path() / ("snug-code-" + std::to_string(getpid()));
  void* memory_ = MAP_FAILED;
};

// However the file lies in the page cache: written in one piece, its 8 MiB lie in pieces of up to 2.
TEST(CodePages, a_touch_maps_at_most_64_kibibytes_also_when_it_was_done_before) {
  const MappedCode code;
  if (!code.is_there()) GTEST_SKIP() << "no code is run from temporary files";
  for (int time = 0; time < 2; ++time) {
    shrink_code_pages();
    EXPECT_EQ(code.resident(), 0);
    int sum = 0;
    for (size_t at = 5000; at < MappedCode::kBytes; at += size_t{1} << 20) sum += code.bytes()[at];
    EXPECT_EQ(sum, 8);
    EXPECT_GT(code.resident(), 0);
    EXPECT_LE(code.resident(), 8 * (64 << 10));
  }
}

TEST(CodePages, what_was_written_into_code_stays) {
  const MappedCode code;
  if (!code.is_there()) GTEST_SKIP() << "no code is run from temporary files";
  code.protect(PROT_READ | PROT_WRITE);
  code.bytes()[5000] = 7;  // as a breakpoint
  code.protect(PROT_READ | PROT_EXEC);
  shrink_code_pages();
  EXPECT_EQ(code.bytes()[5000], 7);
  EXPECT_EQ(code.bytes()[5001], 1);
}

}  // namespace
}  // namespace snug
