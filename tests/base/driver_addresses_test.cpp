#include "base/driver_addresses.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace snug {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20, kTop = int64_t{1} << 46;

DriverAddresses addresses() { return {0, kTop}; }

TEST(DriverAddresses, ChunksGoDownwards) {
  DriverAddresses driver = addresses();
  EXPECT_EQ(driver.take(32 * kMiB), kTop - 32 * kMiB);
  EXPECT_EQ(driver.take(33 * kMiB), kTop - 96 * kMiB);  // two chunks' worth
  EXPECT_EQ(driver.take(512 * kMiB), kTop - 608 * kMiB);
}

TEST(DriverAddresses, WhatAChunkHasLeftServesSmallerOnes) {
  DriverAddresses driver = addresses();
  driver.take(20 * kMiB);
  const int64_t second = *driver.take(20 * kMiB);
  EXPECT_EQ(driver.take(2 * kMiB), second + 20 * kMiB);  // of the latest
  EXPECT_EQ(driver.take(1), second + 22 * kMiB);         // whole pages
  EXPECT_EQ(driver.take(2 * kMiB), second + 24 * kMiB);
}

TEST(DriverAddresses, WhatIsFreeIsTakenAgain) {
  DriverAddresses driver = addresses();
  const int64_t first = *driver.take(64 * kMiB), second = *driver.take(64 * kMiB);
  EXPECT_TRUE(driver.give_back(first));
  EXPECT_FALSE(driver.give_back(first));
  EXPECT_EQ(driver.take(96 * kMiB), second - 96 * kMiB);  // does not fit
  EXPECT_EQ(driver.take(64 * kMiB), first);
  EXPECT_TRUE(driver.give_back(first));
  EXPECT_TRUE(driver.give_back(second));
  EXPECT_EQ(driver.take(128 * kMiB), second);  // neighbours are one gap
}

TEST(DriverAddresses, WhatIsLeftOutIsNotTaken) {
  DriverAddresses driver(0, 256 * kMiB);
  driver.leave_out(100 * kMiB, 30 * kMiB);
  EXPECT_EQ(driver.take(96 * kMiB), 160 * kMiB);
  EXPECT_EQ(driver.take(96 * kMiB), 0);
  EXPECT_EQ(driver.take(2 * kMiB), std::nullopt);
  driver.leave_out(INT64_MAX - 5, 100);  // beyond the end
  driver.leave_out(5, INT64_MAX);
}

TEST(DriverAddresses, MoreThanThereIsFails) {
  DriverAddresses driver(0, 64 * kMiB);
  EXPECT_EQ(driver.take(65 * kMiB), std::nullopt);
  EXPECT_EQ(driver.take(INT64_MAX), std::nullopt);
  EXPECT_EQ(driver.take(64 * kMiB), 0);
}

struct Segment {
  std::string run, action;
  int64_t address = 0, bytes = 0;
};

std::vector<Segment> segments_of_an_h100() {
  std::ifstream file(SNUG_SOURCE_DIR "/tests/golden/h100_segments.csv");
  std::string line;
  std::getline(file, line);
  std::vector<Segment> segments;
  while (std::getline(file, line)) {
    std::stringstream cells(line);
    Segment& one = segments.emplace_back();
    std::string address, bytes;
    std::getline(cells, one.run, ',');
    std::getline(cells, one.action, ',');
    std::getline(cells, address, ',');
    std::getline(cells, bytes, ',');
    one.address = std::stoll(address);
    one.bytes = std::stoll(bytes);
  }
  return segments;
}

// What PyTorch's allocator goes by: which of two segments of one size lies lower. The driver's own allocations, which take
// some of the same chunks, are in no snapshot.
TEST(DriverAddresses, SegmentsLieInTheOrderInWhichAnH100PutThem) {
  int64_t pairs = 0, same = 0, upwards = 0;
  std::string run;
  DriverAddresses driver = addresses();
  std::map<int64_t, std::pair<int64_t, int64_t>> live;  // address on the card → ours, bytes
  for (const Segment& segment : segments_of_an_h100()) {
    if (segment.run != run) {
      run = segment.run;
      driver = addresses();
      live.clear();
    }
    if (segment.action == "segment_free") {
      ASSERT_TRUE(driver.give_back(live.at(segment.address).first));
      live.erase(segment.address);
      continue;
    }
    const int64_t ours = *driver.take(segment.bytes);
    for (const auto& [address, other] : live) {
      if (other.second != segment.bytes) continue;
      ++pairs;
      same += (ours < other.first) == (segment.address < address) ? 1 : 0;
      upwards += segment.address > address ? 1 : 0;
    }
    live[segment.address] = {ours, segment.bytes};
  }
  std::printf("%ld of %ld pairs as on the card; always upwards would be %ld\n", static_cast<long>(same),
              static_cast<long>(pairs), static_cast<long>(upwards));
  EXPECT_GE(pairs, 10000);
  EXPECT_GE(static_cast<double>(same), 0.95 * static_cast<double>(pairs));
}

}  // namespace
}  // namespace snug
