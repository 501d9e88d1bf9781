// The far home's file: zeros at first, what was written after that, no name, and a refusal where there is no room.

#include "run/page_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "base/error.h"
#include "program/tensor.h"

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

// Pages, as the disk takes them past the page cache.
class Pages {
 public:
  explicit Pages(int64_t count) : room_(static_cast<size_t>((count + 1) * kFarAlignment)) {
    void* begin = room_.data();
    size_t space = room_.size();
    begin_ = static_cast<std::byte*>(std::align(kFarAlignment, room_.size() - kFarAlignment, begin, space));
  }
  std::span<std::byte> of(int64_t page, int64_t count = 1) {
    return {begin_ + page * kFarAlignment, static_cast<size_t>(count * kFarAlignment)};
  }
  void fill(int64_t page, int value) { std::ranges::fill(of(page), static_cast<std::byte>(value)); }

 private:
  std::vector<std::byte> room_;
  std::byte* begin_;
};

TEST(PageFile, moves_as_many_pages_at_a_time_as_it_says_and_any_may_be_waited_for_first) {
  constexpr auto kCount = static_cast<int64_t>(PageFile::kMostPages);
  PageFile file(place("moving"), 3 * kCount * kFarAlignment);
  Pages pages(kCount);
  for (int round = 0; round < 3; ++round) {
    std::vector<PageFile::Ticket> tickets;
    for (int64_t i = 0; i < kCount; ++i) {
      pages.fill(i, static_cast<int>(i + round));
      tickets.push_back(file.begin_write((i * 3 + round) * kFarAlignment, pages.of(i)));
    }
    std::rotate(tickets.begin(), tickets.begin() + kCount / 2, tickets.end());
    for (const PageFile::Ticket ticket : tickets) file.wait(ticket, true);
    for (int64_t i = 0; i < kCount; ++i) pages.fill(i, 255);
    tickets.clear();
    for (int64_t i = 0; i < kCount; ++i) tickets.push_back(file.begin_read((i * 3 + round) * kFarAlignment, pages.of(i)));
    std::reverse(tickets.begin(), tickets.end());
    for (const PageFile::Ticket ticket : tickets) file.wait(ticket, false);
    for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(pages.of(i)[4095], static_cast<std::byte>(i + round)) << i;
  }
}

// Loading and saving go by the page cache, pages past it: both see the same bytes.
TEST(PageFile, plain_reads_and_writes_and_pages_see_one_file) {
  PageFile file(place("both"), 64 * kFarAlignment);
  Pages pages(16);
  const std::vector<std::byte> plain(20'000, std::byte{5});
  file.write(100, plain);
  file.wait(file.begin_read(0, pages.of(0, 16)), false);
  EXPECT_EQ(pages.of(0)[99], std::byte{0});
  EXPECT_EQ(pages.of(0)[100], std::byte{5});
  EXPECT_EQ(pages.of(4)[20'099 - 4 * kFarAlignment], std::byte{5});
  pages.fill(0, 8);
  file.wait(file.begin_write(0, pages.of(0)), true);
  EXPECT_EQ(read(file, 4095, 2), (std::vector<std::byte>{std::byte{8}, std::byte{5}}));
  file.clear(0, 64 * kFarAlignment);
  file.wait(file.begin_read(0, pages.of(0, 16)), false);
  EXPECT_EQ(pages.of(0)[0], std::byte{0});
}

TEST(PageFile, names_the_place_where_a_page_ends_beyond_the_file) {
  PageFile file(place("beyond"), kFarAlignment);
  Pages pages(2);
  EXPECT_THROW(file.wait(file.begin_read(0, pages.of(0, 2)), false), Error);
}

}  // namespace

}  // namespace snug::testing
