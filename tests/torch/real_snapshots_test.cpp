// The two real snapshots of ../shared/data: what the file says of its segments against what the blocks, the rules and the
// trace say.

#include <gtest/gtest.h>

#include <unordered_map>

#include "torch/allocator.h"
#include "torch/replay.h"
#include "torch/support_torch.h"

namespace snug {
namespace {

class RealSnapshot : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(real_snapshot(GetParam()))) GTEST_SKIP() << real_snapshot(GetParam()) << " is not there";
    snapshot_ = read_snapshot(real_snapshot(GetParam()));
  }
  Snapshot snapshot_;
};

TEST_P(RealSnapshot, BlocksAddUpToWhatTheFileSaysOfEachSegment) {
  for (const Segment& segment : snapshot_.segments) {
    int64_t bytes = 0, allocated = 0, active = 0, requested = 0;
    for (const Block& block : segment.blocks) {
      ASSERT_EQ(block.address, segment.address + bytes);
      bytes += block.bytes;
      if (block.state == BlockState::inactive) continue;
      active += block.bytes;
      requested += block.requested_bytes;
      if (block.state == BlockState::allocated) allocated += block.bytes;
    }
    EXPECT_EQ(bytes, segment.bytes);
    EXPECT_EQ(allocated, segment.allocated_bytes);
    EXPECT_EQ(active, segment.active_bytes);
    EXPECT_EQ(requested, segment.requested_bytes);
  }
}

TEST_P(RealSnapshot, EverySegmentAndActiveBlockHasASizeThatTheRulesGive) {
  const AllocatorSettings settings = settings_of(snapshot_.settings);
  for (const Segment& segment : snapshot_.segments) {
    EXPECT_EQ(segment.bytes, segment_bytes(segment.small               ? 512
                                           : segment.bytes == 20 << 20 ? 2 << 20
                                                                       : segment.bytes,
                                           settings));
    for (const Block& block : segment.blocks) {
      if (block.state == BlockState::inactive) continue;
      const int64_t rounded = rounded_bytes(block.requested_bytes, settings);
      EXPECT_EQ(is_small(rounded), segment.small);
      EXPECT_GE(block.bytes, rounded);
      EXPECT_TRUE(block.bytes == rounded || !splits(block.bytes, rounded, segment.small, segment.expandable, settings));
    }
  }
}

TEST_P(RealSnapshot, ReplayEndsAtTheFilesOwnBlocksAndTotals) {
  Replay replay(snapshot_, 0);
  while (replay.next()) {
  }
  MemoryTotals file;
  size_t active = 0;
  for (const Segment& segment : snapshot_.segments) {
    file.reserved_bytes += segment.bytes;
    file.allocated_bytes += segment.allocated_bytes;
    file.active_bytes += segment.active_bytes;
    file.requested_bytes += segment.requested_bytes;
    if (segment.active_bytes == 0) file.cached_bytes += segment.bytes;
    for (const Block& block : segment.blocks) {
      if (block.state == BlockState::inactive) continue;
      ++active;
      const auto live = replay.live().find(block.address);
      ASSERT_NE(live, replay.live().end());
      EXPECT_EQ(live->second.bytes, block.bytes);
      EXPECT_EQ(live->second.requested_bytes, block.requested_bytes);
      EXPECT_TRUE(live->second.event == LiveBlock::kBefore || live->second.stack == block.stack);
    }
  }
  EXPECT_EQ(replay.live().size(), active);
  EXPECT_EQ(replay.totals(), file);
  EXPECT_EQ(replay.contradicted_bytes(), 0);
}

// The allocator, given what lay there before the trace, puts every block where PyTorch put it: the same segments at the end.
TEST_P(RealSnapshot, TheSimulationChoosesPyTorchsOwnAddresses) {
  Replay replay(snapshot_, 0);
  Allocator allocator(settings_of(snapshot_.settings));
  for (const Segment& segment : layout_of(replay)) allocator.adopt(segment);
  EXPECT_EQ(allocator.totals(), replay.totals());
  size_t allocations = 0, elsewhere = 0;
  std::unordered_map<int64_t, int64_t> simulated;  // by PyTorch's address
  for (const auto& [address, block] : replay.live()) simulated[address] = address;
  for (size_t i = 0; replay.next(); ++i) {
    const Event& event = snapshot_.event(0, i);
    if (event.action == Action::alloc) {
      const auto address = allocator.allocate(event.bytes, snapshot_.context(event).stream);
      ASSERT_TRUE(address);
      simulated[event.address] = *address;
      ++allocations;
      if (*address != event.address) ++elsewhere;
    }
    if (event.action == Action::free_requested) allocator.request_free(simulated.at(event.address));
    if (event.action == Action::free_completed) allocator.complete_free(simulated.at(event.address));
    ASSERT_EQ(allocator.totals().reserved_bytes, replay.totals().reserved_bytes) << "event " << i;
  }
  EXPECT_EQ(elsewhere, 0U) << "of " << allocations;
  EXPECT_EQ(allocator.totals(), replay.totals());
  EXPECT_EQ(allocator.segments().size(), snapshot_.segments.size());
  for (const Segment& segment : snapshot_.segments) EXPECT_EQ(allocator.segments()[segment.address], segment.bytes);
}

INSTANTIATE_TEST_SUITE_P(Files, RealSnapshot, ::testing::ValuesIn(kRealSnapshots),
                         [](const auto& file) { return file.param.substr(0, file.param.find('.')); });

}  // namespace
}  // namespace snug
