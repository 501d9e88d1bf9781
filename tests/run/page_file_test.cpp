// The far home's file: zeros at first, what was written after that, no name, and a refusal where there is no room.

#include "run/page_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "base/error.h"

namespace snug::testing {

namespace {

namespace fs = std::filesystem;

fs::path place(const char* name) { return fs::temp_directory_path() / ("snug-" + std::to_string(getpid()) + "-" + name); }

std::vector<std::byte> read(const PageFile& file, int64_t offset, size_t bytes) {
  std::vector<std::byte> out(bytes, std::byte{1});
  file.read(offset, out);
  return out;
}

TEST(PageFile, holds_zeros_until_something_is_written_and_takes_no_name) {
  const fs::path path = place("pages");
  std::ofstream(path) << "of a run that was killed";
  PageFile file(path, 3'000'001);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(file.bytes(), 3'000'001);
  EXPECT_EQ(read(file, 0, 3'000'001), std::vector<std::byte>(3'000'001));
  std::vector<std::byte> one(200'000, std::byte{7}), two(100'001, std::byte{9});
  file.clear(0, 3'000'001);
  file.write(4096, one);
  file.write(2'900'000, two);
  file.expect(4096, 200'000);
  EXPECT_EQ(read(file, 4096, one.size()), one);
  EXPECT_EQ(read(file, 2'900'000, two.size()), two);
  EXPECT_EQ(read(file, 0, 4096), std::vector<std::byte>(4096));
  file.clear(4097, 199'998);
  one.assign(one.size(), std::byte{0});
  one.front() = one.back() = std::byte{7};
  EXPECT_EQ(read(file, 4096, one.size()), one);
}

TEST(PageFile, is_refused_where_there_is_no_room) {
  const fs::path path = place("huge");
  try {
    const PageFile file(path, int64_t{1} << 60);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), path.string());
    EXPECT_NE(error.problem().find("1152921504606846976 bytes"), std::string::npos) << error.what();
    EXPECT_NE(error.mend().find("output_dir"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(PageFile, names_the_place_and_the_way_out_where_a_page_cannot_be_read) {
  const PageFile file(place("short"), 4096);
  try {
    read(file, 4000, 200);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), place("short").string());
    EXPECT_NE(error.mend().find("--resume-from-checkpoint"), std::string::npos) << error.what();
  }
}

}  // namespace

}  // namespace snug::testing
