#include "torch/allocator.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace snug {
namespace {

constexpr int64_t kKiB = 1 << 10, kMebibyte = 1 << 20;

TEST(AllocatorRules, RoundAsPyTorchDoes) {
  AllocatorSettings settings;
  EXPECT_EQ(rounded_bytes(0, settings), 512);
  EXPECT_EQ(rounded_bytes(1, settings), 512);
  EXPECT_EQ(rounded_bytes(513, settings), 1024);
  EXPECT_EQ(rounded_bytes(kMebibyte + 1, settings), kMebibyte + 512);
  settings.roundup_divisions.fill(4);  // the example of PyTorch's documentation: 1200 becomes 1280
  EXPECT_EQ(rounded_bytes(1200 * kMebibyte, settings), 1280 * kMebibyte);
  EXPECT_EQ(rounded_bytes(1024 * kMebibyte, settings), 1024 * kMebibyte);
  EXPECT_EQ(rounded_bytes(1200 * kKiB, settings), 1280 * kKiB);
  EXPECT_EQ(rounded_bytes(2048, settings), 2048);
  EXPECT_EQ(rounded_bytes(2049, settings), 2560);
  settings.roundup_divisions = {};
  settings.roundup_divisions[15] = 2;  // of 32 GiB and more
  EXPECT_EQ(rounded_bytes(33 * 1024 * kMebibyte, settings), 48 * 1024 * kMebibyte);
  EXPECT_EQ(rounded_bytes(31 * 1024 * kMebibyte + 1, settings), 31 * 1024 * kMebibyte + 512);
}

TEST(AllocatorRules, SegmentsAsPyTorchReservesThem) {
  const AllocatorSettings settings;
  EXPECT_EQ(segment_bytes(512, settings), 2 * kMebibyte);
  EXPECT_EQ(segment_bytes(kMebibyte, settings), 2 * kMebibyte);
  EXPECT_EQ(segment_bytes(kMebibyte + 512, settings), 20 * kMebibyte);
  EXPECT_EQ(segment_bytes(10 * kMebibyte - 512, settings), 20 * kMebibyte);
  EXPECT_EQ(segment_bytes(10 * kMebibyte, settings), 10 * kMebibyte);
  EXPECT_EQ(segment_bytes(11 * kMebibyte + 512, settings), 12 * kMebibyte);
}

TEST(AllocatorRules, UpToOneMiBStaysInALargeBlock) {
  const AllocatorSettings settings;
  EXPECT_FALSE(splits(12 * kMebibyte, 11 * kMebibyte, false, false, settings));
  EXPECT_TRUE(splits(12 * kMebibyte, 11 * kMebibyte - 512, false, false, settings));
  EXPECT_TRUE(splits(12 * kMebibyte, 12 * kMebibyte - 512, false, true, settings));
  EXPECT_TRUE(splits(1024, 512, true, false, settings));
  EXPECT_FALSE(splits(512, 512, true, false, settings));
}

TEST(Allocator, ReusesTheSmallestBlockThatIsLargeEnough) {
  Allocator allocator({});
  const int64_t large = allocator.allocate(60 * kMebibyte).value(), fitting = allocator.allocate(30 * kMebibyte).value();
  allocator.free(large);
  allocator.free(fitting);
  EXPECT_EQ(allocator.allocate(28 * kMebibyte), fitting);
  EXPECT_EQ(allocator.allocate(31 * kMebibyte), large);
  EXPECT_EQ(allocator.totals().reserved_bytes, 90 * kMebibyte);
  EXPECT_EQ(allocator.totals().allocated_bytes, 59 * kMebibyte);  // 2 MiB and 29 MiB were split off
}

TEST(Allocator, StreamsAndPoolsDoNotShareBlocks) {
  Allocator allocator({});
  allocator.free(allocator.allocate(30 * kMebibyte, 0).value());
  EXPECT_TRUE(allocator.allocate(30 * kMebibyte, 1));
  EXPECT_TRUE(allocator.allocate(30 * kMebibyte, 0, {1, 2}));
  EXPECT_EQ(allocator.totals().reserved_bytes, 90 * kMebibyte);
  EXPECT_EQ(allocator.totals().cached_bytes, 30 * kMebibyte);
}

TEST(Allocator, ReleasesWhatIsCachedBeforeItGivesUp) {
  AllocatorSettings settings;
  settings.limit_bytes = 100 * kMebibyte;
  Allocator allocator(settings);
  allocator.free(allocator.allocate(60 * kMebibyte).value());
  EXPECT_TRUE(allocator.allocate(80 * kMebibyte));
  EXPECT_EQ(allocator.retries(), 1);
  EXPECT_EQ(allocator.totals().reserved_bytes, 80 * kMebibyte);
  EXPECT_FALSE(allocator.allocate(30 * kMebibyte));
}

TEST(Allocator, ABlockThatAnotherStreamUsesIsNotFree) {
  Allocator allocator({});
  const int64_t address = allocator.allocate(30 * kMebibyte).value();
  allocator.request_free(address);
  EXPECT_EQ(allocator.totals().allocated_bytes, 0);
  EXPECT_EQ(allocator.totals().active_bytes, 30 * kMebibyte);
  EXPECT_NE(allocator.allocate(30 * kMebibyte), address);
  allocator.complete_free(address);
  EXPECT_EQ(allocator.allocate(30 * kMebibyte), address);
}

TEST(Allocator, ExpandableSegmentsGrowInPlace) {
  AllocatorSettings settings;
  settings.expandable_segments = true;
  Allocator allocator(settings);
  const int64_t first = allocator.allocate(30 * kMebibyte).value();
  EXPECT_EQ(allocator.totals().reserved_bytes, 40 * kMebibyte);
  EXPECT_EQ(allocator.allocate(30 * kMebibyte), first + 30 * kMebibyte);
  EXPECT_EQ(allocator.totals().reserved_bytes, 60 * kMebibyte);
  allocator.free(first);
  EXPECT_EQ(allocator.totals().cached_bytes, 20 * kMebibyte);  // whole pages
  allocator.release_cached();
  EXPECT_EQ(allocator.totals().reserved_bytes, 40 * kMebibyte);
  EXPECT_EQ(allocator.segments().size(), 1U);
  EXPECT_EQ(allocator.allocate(30 * kMebibyte), first);
}

TEST(Allocator, CollectsWhatHasBeenIdleForLongest) {
  AllocatorSettings settings;
  settings.garbage_collection_threshold = 0.5;
  settings.allowed_bytes = 200 * kMebibyte;
  Allocator allocator(settings);
  const int64_t first = allocator.allocate(40 * kMebibyte).value(), second = allocator.allocate(30 * kMebibyte).value();
  allocator.free(first);
  allocator.free(second);
  for (int i = 0; i < 4; ++i) allocator.free(allocator.allocate(20 * kMebibyte).value());  // the smaller is used meanwhile
  EXPECT_TRUE(allocator.allocate(50 * kMebibyte));  // 70 MiB held: nothing to collect yet
  EXPECT_EQ(allocator.totals().reserved_bytes, 120 * kMebibyte);
  // 20 MiB beyond the half; the first was put away six searches ago, the second two: the older than the mean goes.
  EXPECT_TRUE(allocator.allocate(60 * kMebibyte));
  EXPECT_EQ(allocator.totals().reserved_bytes, 120 * kMebibyte - 40 * kMebibyte + 60 * kMebibyte);
  EXPECT_EQ(allocator.block_bytes(first), 60 * kMebibyte);  // where the first was, there is room again
  EXPECT_EQ(allocator.segments().at(second), 30 * kMebibyte);
  EXPECT_EQ(allocator.retries(), 0);
}

// Of two segments of one size the later lies lower: PyTorch 2.11 takes it, 2.12 to 2.15 the older one.
TEST(Allocator, OfBlocksThatFitEquallyTheLowestOrTheOldestIsTaken) {
  for (const bool older : {false, true}) {
    AllocatorSettings settings;
    settings.prefers_older_segments = older;
    Allocator allocator(settings);
    const int64_t first = allocator.allocate(40 * kMebibyte).value(), second = allocator.allocate(40 * kMebibyte).value();
    EXPECT_LT(second, first);
    allocator.free(first);
    allocator.free(second);
    EXPECT_EQ(allocator.allocate(40 * kMebibyte), older ? first : second);
  }
}

TEST(AllocatorRules, AShareThatIsNoneIsOff) {
  RecordedSettings recorded;
  for (const double share : {-1.0, 1.0, 1e123, std::numeric_limits<double>::quiet_NaN()}) {
    recorded.garbage_collection_threshold = share;
    EXPECT_EQ(settings_of(recorded).garbage_collection_threshold, 0);
  }
  recorded.garbage_collection_threshold = 0.8;
  EXPECT_EQ(settings_of(recorded).garbage_collection_threshold, 0.8);
}

TEST(Allocator, CollectsNothingWithoutAnAllowedShare) {
  AllocatorSettings settings;
  settings.garbage_collection_threshold = 0.1;
  Allocator allocator(settings);
  allocator.free(allocator.allocate(40 * kMebibyte).value());
  EXPECT_TRUE(allocator.allocate(50 * kMebibyte));
  EXPECT_EQ(allocator.totals().reserved_bytes, 90 * kMebibyte);
}

TEST(Allocator, ACaptureReleasesNothingAndFailsInstead) {
  AllocatorSettings settings;
  settings.limit_bytes = 100 * kMebibyte;
  Allocator allocator(settings);
  allocator.free(allocator.allocate(60 * kMebibyte).value());
  allocator.begin_capture();
  EXPECT_FALSE(allocator.allocate(50 * kMebibyte, 1, {1, 1}));
  EXPECT_EQ(allocator.retries(), 0);
  EXPECT_EQ(allocator.totals().cached_bytes, 60 * kMebibyte);
  allocator.end_capture();
  EXPECT_TRUE(allocator.allocate(50 * kMebibyte, 1, {1, 1}));
  EXPECT_THROW(allocator.end_capture(), Error);
}

TEST(Allocator, APrivatePoolKeepsItsMemoryUntilItsLastUserGoes) {
  Allocator allocator({});
  const PoolId pool{1, 3};
  allocator.free(allocator.allocate(40 * kMebibyte, 0, pool).value());
  allocator.use_pool(pool);
  allocator.release_cached();
  EXPECT_EQ(allocator.totals().reserved_bytes, 40 * kMebibyte);
  allocator.release_pool(pool);
  allocator.release_cached();
  EXPECT_EQ(allocator.totals().reserved_bytes, 40 * kMebibyte);
  allocator.release_pool(pool);
  EXPECT_EQ(allocator.totals().reserved_bytes, 40 * kMebibyte);  // free for the next release, not yet
  allocator.release_cached();
  EXPECT_EQ(allocator.totals().reserved_bytes, 0);
  EXPECT_THROW(allocator.release_pool(pool), Error);
}

TEST(Allocator, AReleaseWaitsForOtherStreams) {
  Allocator allocator({});
  const int64_t address = allocator.allocate(40 * kMebibyte).value();
  allocator.request_free(address);
  allocator.release_cached();
  EXPECT_EQ(allocator.totals(), MemoryTotals{});
  allocator.complete_free(address);  // told later: known already
  EXPECT_THROW(allocator.complete_free(address), Error);
}

TEST(Allocator, ExpandableSegmentsAreLeftAloneOnceSwitchedOff) {
  Segment segment;
  segment.address = int64_t{1} << 40;
  segment.bytes = 40 * kMebibyte;
  segment.expandable = true;
  segment.blocks = {{segment.address, 40 * kMebibyte, 0, 0, BlockState::inactive}};
  Allocator allocator({});
  allocator.adopt(segment);
  const int64_t address = allocator.allocate(30 * kMebibyte).value();
  EXPECT_TRUE(address < segment.address || address >= segment.address + segment.bytes);
  EXPECT_EQ(allocator.totals().reserved_bytes, 70 * kMebibyte);
}

TEST(Allocator, RefusesFreesOfWhatIsNotAllocated) {
  Allocator allocator({});
  EXPECT_THROW(allocator.free(512), Error);
  const int64_t address = allocator.allocate(1).value();
  allocator.free(address);
  EXPECT_THROW(allocator.free(address), Error);
  EXPECT_THROW(allocator.complete_free(address), Error);
}

TEST(Allocator, RefusesSegmentsThatCannotBe) {
  Segment segment;
  segment.address = 0;
  segment.bytes = 20 * kMebibyte;
  segment.blocks = {{0, 10 * kMebibyte, 0, 0, BlockState::inactive}};
  Allocator allocator({});
  EXPECT_THROW(allocator.adopt(segment), Error);
  segment.blocks.push_back({10 * kMebibyte, 10 * kMebibyte, 10 * kMebibyte, 0, BlockState::allocated});
  allocator.adopt(segment);
  EXPECT_EQ(allocator.totals().active_bytes, 10 * kMebibyte);
  EXPECT_THROW(allocator.adopt(segment), Error);
  segment.address = 10 * kMebibyte;
  EXPECT_THROW(allocator.adopt(segment), Error);
}

}  // namespace
}  // namespace snug
