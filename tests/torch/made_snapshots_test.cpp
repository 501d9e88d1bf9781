// Snapshots whose every state is known, from a model of the allocator in Python (tests/oracle/make_snapshots.py).

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "torch/allocator.h"
#include "torch/replay.h"
#include "torch/support_torch.h"

namespace snug {
namespace {

const std::filesystem::path kMade = SNUG_SOURCE_DIR "/tests/golden/snapshots";

class MadeSnapshot : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    snapshot_ = read_snapshot(kMade / (GetParam() + ".pickle"));
    expected_ = nlohmann::json::parse(std::ifstream(kMade / (GetParam() + ".json")));
    device_ = expected_["device"];
  }

  // Cached pages of expandable segments are counted by whole segments here, by pages in the simulation.
  static MemoryTotals totals(const nlohmann::json& state) { return {state[0], state[1], state[2], state[3], state[4]}; }

  void expect_state(MemoryTotals actual, const nlohmann::json& state) const {
    MemoryTotals expected = totals(state);
    if (snapshot_.settings.expandable_segments) actual.cached_bytes = expected.cached_bytes = 0;
    EXPECT_EQ(actual.requested_bytes, expected.requested_bytes);
    EXPECT_EQ(actual.allocated_bytes, expected.allocated_bytes);
    EXPECT_EQ(actual.active_bytes, expected.active_bytes);
    EXPECT_EQ(actual.reserved_bytes, expected.reserved_bytes);
    EXPECT_EQ(actual.cached_bytes, expected.cached_bytes);
  }

  Snapshot snapshot_;
  nlohmann::json expected_;
  int device_ = 0;
};

TEST_P(MadeSnapshot, IsReplayedThroughEveryState) {
  Replay replay(snapshot_, device_);
  int checked = 0;
  while (replay.next()) {
    const std::string event = std::to_string(replay.position() - 1);
    if (!expected_["states"].contains(event)) continue;
    SCOPED_TRACE("after event " + event);
    expect_state(replay.totals(), expected_["states"][event]);
    ++checked;
  }
  EXPECT_GE(checked, 5);
  expect_state(replay.totals(), expected_["final"]);
  EXPECT_EQ(replay.contradicted_bytes(), 0);
}

TEST_P(MadeSnapshot, EndsAtTheFilesOwnBlocks) {
  Replay replay(snapshot_, device_);
  replay.advance_to(replay.events());
  size_t active = 0;
  for (const Segment& segment : snapshot_.segments) {
    if (segment.device != device_) continue;
    const auto there = replay.segments().find(segment.address);
    ASSERT_NE(there, replay.segments().end());
    EXPECT_EQ(there->second.bytes, segment.bytes);
    EXPECT_EQ(there->second.active_bytes, segment.active_bytes);
    for (const Block& block : segment.blocks) {
      if (block.state == BlockState::inactive) continue;
      ++active;
      ASSERT_TRUE(replay.live().contains(block.address));
      const LiveBlock& live = replay.live().at(block.address);
      EXPECT_EQ(live.bytes, block.bytes);
      EXPECT_EQ(live.requested_bytes, block.requested_bytes);
      EXPECT_EQ(live.stack, block.stack);
      EXPECT_EQ(live.pending, block.state == BlockState::pending_free);
    }
  }
  EXPECT_EQ(replay.live().size(), active);
}

TEST_P(MadeSnapshot, KnowsWhenMemoryRanOutAndThePeak) {
  EXPECT_EQ(oom_events(snapshot_, device_), expected_["oom_events"].get<std::vector<size_t>>());
  const Peak peak = peak_of(snapshot_, device_);
  EXPECT_EQ(peak.totals.allocated_bytes, expected_["peak_allocated"]);
  Replay replay(snapshot_, device_);
  replay.advance_to(peak.position);
  EXPECT_EQ(replay.totals(), peak.totals);
  int64_t bytes = 0;
  for (const LiveStack& stack : live_by_stack(replay)) bytes += stack.bytes;
  EXPECT_EQ(bytes, peak.totals.active_bytes);
}

// Given the program's requests alone, and what it does that leaves no event, the simulation reserves, splits, releases and
// fails as the model does.
class WholeTrace : public MadeSnapshot {
 protected:
  AllocatorSettings settings() const {
    AllocatorSettings settings = settings_of(snapshot_.settings);
    settings.limit_bytes = expected_["limit_bytes"];
    if (!expected_["allowed_bytes"].is_null()) settings.allowed_bytes = expected_["allowed_bytes"];
    return settings;
  }

  static PoolId pool(const nlohmann::json& owner, const nlohmann::json& number) { return {owner, number}; }

  // What the program did after `events` events, from the call `next` on.
  void make_calls(Allocator& allocator, size_t events, size_t& next) const {
    const nlohmann::json& calls = expected_["calls"];
    for (; next < calls.size() && calls[next][0] <= events; ++next) {
      const std::string name = calls[next][1];
      const PoolId whose = pool(calls[next][2], calls[next][3]);
      if (name == "begin_capture") allocator.begin_capture();
      if (name == "end_capture") allocator.end_capture();
      if (name == "use_pool") allocator.use_pool(whose);
      if (name == "release_pool") allocator.release_pool(whose);
      if (name == "release_cached") allocator.release_cached();
    }
  }
};

TEST_P(WholeTrace, IsReproducedByTheSimulationFromItsRequests) {
  Allocator allocator(settings());
  for (const auto& own : expected_["own_allocator"]) allocator.set_own_allocator(pool(own[0], own[1]));
  std::map<int64_t, int64_t> simulated;
  size_t next_call = 0;
  const auto waited = expected_["waited"].get<std::set<size_t>>();  // the simulation waits by itself
  for (size_t i = 0; i < snapshot_.event_count(device_); ++i) {
    make_calls(allocator, i, next_call);
    const Event& event = snapshot_.event(device_, i);
    const EventContext& context = snapshot_.context(event);
    if (event.action == Action::alloc || event.action == Action::oom) {
      const auto address = allocator.allocate(event.bytes, context.stream, context.pool);
      ASSERT_EQ(address.has_value(), event.action == Action::alloc) << "event " << i;
      if (address) simulated[event.address] = *address;
    }
    if (event.action == Action::free_requested) allocator.request_free(simulated.at(event.address));
    if (event.action == Action::free_completed && !waited.contains(i)) allocator.complete_free(simulated.at(event.address));
    const bool settled =
        event.action < Action::segment_alloc && !waited.contains(i);  // not within an allocation or a release
    if (!settled || !expected_["states"].contains(std::to_string(i))) continue;
    SCOPED_TRACE("after event " + std::to_string(i));
    expect_state(allocator.totals(), expected_["states"][std::to_string(i)]);
  }
  expect_state(allocator.totals(), expected_["final"]);
}

INSTANTIATE_TEST_SUITE_P(Cases, MadeSnapshot,
                         ::testing::Values("fragmentation", "unwinding", "mixed", "ring", "pools", "unnamed_pools",
                                           "expandable", "expandable_ring", "expandable_pools", "own_allocator", "rounded",
                                           "split_limit", "large_segments", "collected", "allowed", "graphs", "capturing",
                                           "capturing_expandable", "skipped", "two_devices", "without_frames", "xpu", "old",
                                           "host"),
                         [](const auto& name) { return name.param; });

// A ring has lost its start; where pools have no names or requests to free are left out, the requests are not all there.
INSTANTIATE_TEST_SUITE_P(Cases, WholeTrace,
                         ::testing::Values("fragmentation", "unwinding", "mixed", "pools", "expandable", "expandable_pools",
                                           "own_allocator", "rounded", "split_limit", "large_segments", "collected",
                                           "allowed", "graphs", "capturing", "capturing_expandable", "two_devices",
                                           "without_frames", "xpu", "old", "host"),
                         [](const auto& name) { return name.param; });

Snapshot made(const std::string& name) { return read_snapshot(kMade / (name + ".pickle")); }

TEST(MadeSnapshots, AtTheOomEventEverythingIsStillThere) {
  const Snapshot snapshot = made("unwinding");
  Replay replay(snapshot, 0);
  replay.advance_to(oom_events(snapshot, 0).at(0));
  EXPECT_EQ(replay.live().size(), 25U);
  EXPECT_EQ(replay.totals().reserved_bytes, 25 * (12 << 20));
  EXPECT_EQ(replay.totals().cached_bytes, 0);
  const auto stacks = live_by_stack(replay);
  ASSERT_EQ(stacks.size(), 3U);
  EXPECT_EQ(stacks[0].blocks, 9);
  EXPECT_EQ(snapshot.texts[snapshot.stacks.frame(snapshot.stacks.frames(stacks[0].stack)[0]).file].substr(0, 16),
            "/app/model/part_");
  for (const Segment& segment : snapshot.segments) EXPECT_EQ(segment.active_bytes, 0);
}

TEST(MadeSnapshots, FragmentsAreNotCached) {
  const Snapshot snapshot = made("fragmentation");
  Replay replay(snapshot, 0);
  const size_t oom = oom_events(snapshot, 0).at(0);
  replay.advance_to(oom);
  EXPECT_EQ(replay.totals().allocated_bytes, 6 * (32 << 20));
  EXPECT_EQ(replay.totals().fragment_bytes(), 208 << 20);
  EXPECT_EQ(replay.totals().cached_bytes, 0);
  EXPECT_EQ(replay.largest_free_bytes(), 32 << 20);
  EXPECT_EQ(snapshot.event(0, oom).bytes, 150 << 20);
  EXPECT_EQ(snapshot.event(0, oom).address, 112 << 20);  // device_free
}

TEST(MadeSnapshots, ExpandableSegmentsWouldHaveSavedIt) {
  const Snapshot snapshot = made("fragmentation");
  AllocatorSettings settings = settings_of(snapshot.settings);
  settings.limit_bytes = 512 << 20;
  for (const bool expandable : {false, true}) {
    settings.expandable_segments = expandable;
    Allocator allocator(settings);
    std::map<int64_t, int64_t> simulated;
    for (size_t i = 0; i < snapshot.event_count(0); ++i) {
      const Event& event = snapshot.event(0, i);
      if (event.action == Action::alloc) simulated[event.address] = allocator.allocate(event.bytes).value();
      if (event.action == Action::free_completed) allocator.free(simulated.at(event.address));
      if (event.action != Action::oom) continue;
      EXPECT_EQ(allocator.allocate(event.bytes).has_value(), expandable);
    }
  }
}

TEST(MadeSnapshots, EveryGenerationIsRead) {
  const Snapshot old = made("old");
  EXPECT_FALSE(old.settings.known);
  EXPECT_EQ(old.event(0, 0).time_us, 0);
  const Snapshot pools = made("pools");
  EXPECT_EQ(pools.contexts.size(), 3U);
  EXPECT_EQ(pools.annotations.size(), 2U);
  EXPECT_EQ(pools.texts[pools.annotations[0].name], "step");
  EXPECT_TRUE(pools.annotations[0].start);
  const Snapshot host = made("host");
  ASSERT_EQ(host.host_segments.size(), 1U);
  EXPECT_EQ(host.host_segments[0].bytes, 4096);
  ASSERT_EQ(host.host_traces.size(), 1U);
  EXPECT_EQ(host.host_traces[0].count, 1U);
  EXPECT_EQ(made("split_limit").settings.max_split_bytes, 40 << 20);
  EXPECT_EQ(made("rounded").settings.roundup_divisions[15], 4);
  const Snapshot bare = made("bare");
  EXPECT_EQ(bare.segments.size(), made("mixed").segments.size());
  EXPECT_EQ(bare.event_count(0), 0U);
  Replay replay(bare, 0);
  EXPECT_FALSE(replay.next());
  int64_t allocated = 0;
  for (const Segment& segment : bare.segments) allocated += segment.allocated_bytes;
  EXPECT_EQ(replay.totals().allocated_bytes, allocated);
}

}  // namespace
}  // namespace snug
