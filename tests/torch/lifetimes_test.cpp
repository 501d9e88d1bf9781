// Lives against the replay itself: at every position of traces of every kind, what is alive adds up to what is held there.

#include "torch/lifetimes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "torch/support_torch.h"
#include "torch/support_write.h"

namespace snug {
namespace {

struct Sums {
  int64_t active = 0, allocated = 0, reserved = 0, blocks = 0;
  bool operator==(const Sums&) const = default;
};

struct Lives {
  std::vector<BlockLife> blocks;
  std::vector<ReservedLife> reserved;
};

Lives lives_of(const Snapshot& snapshot) {
  Lives lives;
  tell_lives(snapshot, 0,
             {.block = [&](const BlockLife& life) { lives.blocks.push_back(life); },
              .reserved = [&](const ReservedLife& life) { lives.reserved.push_back(life); }});
  return lives;
}

// What is alive at each position.
std::vector<Sums> sums_of(const Lives& lives, size_t events) {
  std::vector<Sums> sums(events + 1);
  for (const BlockLife& life : lives.blocks) {
    EXPECT_LT(life.first, life.end);
    EXPECT_LE(life.end, events + 1);
    for (size_t p = life.first; p < life.end; ++p) {
      sums[p].active += life.bytes;
      sums[p].allocated += p < life.asked ? life.bytes : 0;
      ++sums[p].blocks;
    }
  }
  for (const ReservedLife& life : lives.reserved)
    for (size_t p = life.first; p < life.end; ++p) sums[p].reserved += life.bytes;
  return sums;
}

void expect_the_replay(const Snapshot& snapshot) {
  Replay replay(snapshot, 0);
  const std::vector<Sums> sums = sums_of(lives_of(snapshot), replay.events());
  do {
    const MemoryTotals& totals = replay.totals();
    const Sums expected{totals.active_bytes, totals.allocated_bytes, totals.reserved_bytes,
                        static_cast<int64_t>(replay.live().size())};
    ASSERT_EQ(sums[replay.position()], expected) << "after " << replay.position() << " events";
  } while (replay.next());
}

TEST(Lifetimes, AddUpToTheReplayAtEveryEvent) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SNUG_SOURCE_DIR "/tests/golden/snapshots")) {
    if (entry.path().extension() != ".pickle") continue;
    SCOPED_TRACE(entry.path().filename());
    expect_the_replay(read_snapshot(entry.path()));
    ++files;
  }
  EXPECT_GE(files, 12);
}

TEST(Lifetimes, AddUpToTheReplayOfARealRun) {
  for (const char* name : {"gpt_medium_ctx1024_training.pickle", "gpt_medium_ctx128_inference.pickle"}) {
    if (!std::filesystem::exists(real_snapshot(name))) GTEST_SKIP() << real_snapshot(name) << " is not there";
    expect_the_replay(read_snapshot(real_snapshot(name)));
  }
}

Snapshot snapshot_of(const std::vector<std::string>& events) {
  const std::string file = pickled::snapshot({}, events);
  return read_snapshot(std::as_bytes(std::span(file)), "made");
}

// A block of 2 MiB is freed that the trace did not allocate; one that begins half a MiB behind it shows that it was larger.
TEST(Lifetimes, ABlockThatTurnsOutLargerHasTwoThatMeet) {
  const int64_t start = int64_t{1} << 30, half = 512 << 10;
  const Snapshot snapshot =
      snapshot_of({pickled::event("alloc", start + (2 << 20) + half, 3 << 20),
                   pickled::event("free_completed", start, 2 << 20), pickled::event("segment_free", start, 20 << 20)});
  const Lives lives = lives_of(snapshot);
  ASSERT_EQ(lives.blocks.size(), 3u);
  EXPECT_EQ(lives.blocks[0].bytes, 2 << 20);
  EXPECT_EQ(lives.blocks[0].end, 1u);
  EXPECT_EQ(lives.blocks[1].bytes, (2 << 20) + half);
  EXPECT_EQ(lives.blocks[1].first, 1u);
  EXPECT_EQ(lives.blocks[1].end, 2u);
  EXPECT_TRUE(lives.blocks[0].older && lives.blocks[1].older);
  EXPECT_FALSE(lives.blocks[2].older);
}

TEST(Lifetimes, MemoryThatIsUnmappedInPartGoesOnAsTwoStretches) {
  const int64_t start = int64_t{1} << 30, page = 2 << 20;
  const Snapshot snapshot =
      snapshot_of({pickled::event("segment_map", start, 4 * page), pickled::event("segment_unmap", start + page, page)});
  const Lives lives = lives_of(snapshot);
  std::vector<std::array<int64_t, 4>> told;
  for (const ReservedLife& life : lives.reserved)
    told.push_back({life.address - start, life.bytes, static_cast<int64_t>(life.first), static_cast<int64_t>(life.end)});
  std::ranges::sort(told);
  const std::vector<std::array<int64_t, 4>> expected = {{0, page, 2, 3}, {0, 4 * page, 1, 2}, {2 * page, 2 * page, 2, 3}};
  EXPECT_EQ(told, expected);
}

}  // namespace
}  // namespace snug
