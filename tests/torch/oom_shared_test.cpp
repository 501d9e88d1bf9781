// The texts that people posted, in ../shared/data/oom: each field as a person reads it there.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "torch/oom_log.h"
#include "torch/support_oom_texts.h"

namespace snug::torch_tests {

namespace {

namespace fs = std::filesystem;

fs::path folder() {
  const char* shared = std::getenv("SNUG_SHARED");
  return (shared != nullptr ? fs::path(shared) : fs::path(SNUG_SOURCE_DIR) / ".." / "shared") / "data" / "oom";
}

struct Expected {
  int number;
  OomSource source;
  std::string_view era;
  std::optional<int> device;
  std::optional<int64_t> tried, capacity, free, allocated, reserved, unallocated;
  std::optional<int64_t> process = {}, private_pools = {};
  std::vector<OomProcess> processes = {};
  std::optional<int> rank = {};
  int64_t line = 1;
};

constexpr std::optional<int64_t> kNone;

std::vector<Expected> expectations() {
  return {
      {1, thc, "up to 1.0", {}, kNone, kNone, kNone, kNone, kNone, kNone},
      {3, torch_cuda, "1.0-1.3", 0, gib(8.13), gib(10.76), gib(8.20), mib(643.57), kNone, mib(32.43)},
      {5, torch_cuda, "1.0-1.3", 0, mib(24), gib(3.95), mib(1.06), gib(3.46), kNone, kib(60)},
      {7, torch_cuda, "1.4-1.9", 0, mib(844), gib(14.76), mib(498.75), gib(9.70), gib(10.15), kNone, {}, {}, {}, {}, 3},
      {9, torch_cuda, "1.10-1.12", 1, mib(112), gib(79.15), mib(73.69), gib(77.24), gib(77.82), kNone, {}, {}, {}, {}, 4},
      {11, torch_cuda, "1.10-2.0", 1, gib(1.25), gib(79.10), mib(290.12), gib(76.13), gib(77.47), kNone},
      {13, torch_cuda, "1.13-2.0", 0, mib(64), gib(12), gib(8.36), gib(2.60), gib(2.62), kNone},
      {15, torch_cuda, "2.1", 0, gib(1.70), gib(6), 0, gib(2.93), kNone, gib(2.30)},
      {17, torch_cuda, "2.1", 0, mib(64), gib(15.70), mib(44.56), gib(14.19), kNone, mib(775.25), gib(15.10)},
      {19,
       torch_cuda,
       "2.2-2.4",
       {},
       gib(3.91),
       gib(23.68),
       gib(3.38),
       gib(19.16),
       kNone,
       mib(544.12),
       gib(20.29),
       {},
       {},
       1,
       3},
      {21,
       torch_cuda,
       "2.5-2.8",
       4,
       gib(1.30),
       gib(94.99),
       mib(861.06),
       gib(85.75),
       kNone,
       gib(3.97),
       gib(94.14),
       {},
       {},
       4},
      {23,
       torch_cuda,
       "2.5-2.8",
       0,
       mib(546),
       gib(15.77),
       mib(514.19),
       gib(13.73),
       kNone,
       mib(736.86),
       {},
       mib(46),
       {{562167, gib(15.25)}}},
      {25,
       torch_cuda,
       "2.8 or later",
       0,
       gib(1.54),
       gib(14.74),
       mib(722.19),
       gib(3.34),
       kNone,
       mib(70.13),
       {},
       {},
       {{22056, gib(3.56)}, {22047, gib(9.17)}, {22053, mib(306)}, {22050, gib(1)}}},
      {27, torch_hip, "2.5-2.8", 0, gib(3.31), gib(128), mib(780.24), gib(57.70), kNone, mib(75.82), {}, {}, {}, {}, 3},
      {29, cublas, "", {}, kNone, kNone, kNone, kNone, kNone, kNone, {}, {}, {}, {}, 16},
      {31, caffe2, "", {}, kNone, kNone, kNone, kNone, kNone, kNone},
  };
}

}  // namespace

TEST(OomShared, EveryTextThatPeoplePostedIsReadAsAPersonReadsIt) {
  if (!fs::exists(folder())) GTEST_SKIP() << folder() << " is not there";
  for (const Expected& e : expectations()) {
    const fs::path path = folder() / (std::to_string(e.number) + ".txt");
    if (!fs::exists(path)) continue;
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    const OomLog log = read_oom_log(text.str());
    SCOPED_TRACE(path);
    ASSERT_TRUE(log.first);
    EXPECT_EQ(log.count, 1);
    const OomMessage& m = log.cause();
    EXPECT_EQ(name_of(m.source), name_of(e.source));
    EXPECT_EQ(m.era, e.era);
    EXPECT_EQ(m.line, e.line);
    EXPECT_EQ(m.rank, e.rank);
    EXPECT_EQ(m.device, e.device);
    EXPECT_EQ(m.tried_bytes, e.tried);
    EXPECT_EQ(m.capacity_bytes, e.capacity);
    EXPECT_EQ(m.free_bytes, e.free);
    EXPECT_EQ(m.allocated_bytes, e.allocated);
    EXPECT_EQ(m.reserved_bytes, e.reserved);
    EXPECT_EQ(m.unallocated_bytes, e.unallocated);
    EXPECT_EQ(m.process_bytes, e.process);
    EXPECT_EQ(m.private_pool_bytes, e.private_pools);
    EXPECT_FALSE(m.allowed_bytes);
    EXPECT_TRUE(m.impossible.empty());
    ASSERT_EQ(m.processes.size(), e.processes.size());
    for (size_t i = 0; i < m.processes.size(); ++i) {
      EXPECT_EQ(m.processes[i].pid, e.processes[i].pid);
      EXPECT_EQ(m.processes[i].bytes, e.processes[i].bytes);
    }
  }
}

}  // namespace snug::torch_tests
