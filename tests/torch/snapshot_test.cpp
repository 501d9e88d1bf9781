// What a snapshot may hold that PyTorch's own files seldom do, and what is refused.

#include "torch/snapshot.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "torch/replay.h"
#include "torch/support_write.h"

namespace snug {
namespace {

Snapshot read(const std::string& pickle) { return read_snapshot(std::as_bytes(std::span(pickle)), "made.pickle"); }

std::string refusal(const std::string& pickle) {
  try {
    read(pickle);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

::testing::AssertionResult says(const std::string& message, const std::string& part) {
  if (message.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << message << "' does not say '" << part << "'";
}

TEST(Snapshot, KnowsEachEvent) {
  const Snapshot snapshot = read(pickled::snapshot(
      {}, {pickled::event("alloc", 512, 100, pickled::list({pickled::frame("inner", 3), pickled::frame("outer", 4)})),
           pickled::event("free_requested", 512, 100), pickled::event("a_new_action", 7, 8)}));
  ASSERT_EQ(snapshot.event_count(0), 3U);
  const Event& event = snapshot.event(0, 0);
  EXPECT_EQ(event.action, Action::alloc);
  EXPECT_EQ(event.address, 512);
  EXPECT_EQ(event.bytes, 100);
  EXPECT_EQ(snapshot.context(event).stream, 5);
  const auto frames = snapshot.stacks.frames(event.stack);
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(snapshot.texts[snapshot.stacks.frame(frames[0]).function], "inner");
  EXPECT_EQ(snapshot.texts[snapshot.stacks.frame(frames[1]).function], "outer");
  EXPECT_EQ(snapshot.stacks.frame(frames[1]).line, 4);
  EXPECT_EQ(snapshot.event(0, 1).stack, 0U);
  EXPECT_EQ(snapshot.event(0, 2).action, Action::unknown);
  EXPECT_EQ(snapshot.event_count(1), 0U);
}

TEST(Snapshot, StacksThatAreEqualAreOneNumber) {
  const auto stack = [](int64_t line) { return pickled::list({pickled::frame("inner", line), pickled::frame("outer", 4)}); };
  const Snapshot snapshot =
      read(pickled::snapshot({}, {pickled::event("alloc", 0, 1, stack(1)), pickled::event("alloc", 1, 1, stack(2)),
                                  pickled::event("alloc", 2, 1, stack(1))}));
  EXPECT_EQ(snapshot.event(0, 0).stack, snapshot.event(0, 2).stack);
  EXPECT_NE(snapshot.event(0, 0).stack, snapshot.event(0, 1).stack);
}

// Python's pickler fills a list in batches of 1000.
TEST(Snapshot, StacksMayBeDeeperThanOneBatch) {
  std::string deep = "](";
  for (int i = 0; i < 1000; ++i) deep += pickled::frame("recurse", i);
  deep += "e(";
  for (int i = 1000; i < 1500; ++i) deep += pickled::frame("recurse", i);
  deep += "e";
  const Snapshot snapshot = read(pickled::snapshot({}, {pickled::event("alloc", 0, 1, deep)}));
  const auto frames = snapshot.stacks.frames(snapshot.event(0, 0).stack);
  ASSERT_EQ(frames.size(), 1500U);
  for (size_t i = 0; i < frames.size(); ++i) ASSERT_EQ(snapshot.stacks.frame(frames[i]).line, static_cast<int>(i));
}

TEST(Snapshot, TracesMayComeInBatchesAndShareNothing) {
  std::string trace = "](";
  for (int i = 0; i < 1000; ++i) trace += pickled::event("alloc", i, 1);
  trace += "e(";
  for (int i = 1000; i < 1500; ++i) trace += pickled::event("alloc", i, 1);
  trace += "e";
  const std::string other = pickled::list({pickled::event("oom", 3, 4)});
  const Snapshot snapshot =
      read(pickled::file(pickled::dict({{"segments", "]"}, {"device_traces", pickled::list({trace, "]", other})}})));
  ASSERT_EQ(snapshot.traces.size(), 3U);
  EXPECT_EQ(snapshot.event_count(0), 1500U);
  EXPECT_EQ(snapshot.event(0, 1499).address, 1499);
  EXPECT_EQ(snapshot.event_count(1), 0U);
  EXPECT_EQ(snapshot.event(2, 0).action, Action::oom);
}

TEST(Snapshot, AnEventThatIsNamedTwiceCountsTwice) {
  const std::string twice = pickled::event("alloc", 1, 2) + "q\x01h\x01";
  const Snapshot snapshot = read(pickled::snapshot({}, {twice}));
  ASSERT_EQ(snapshot.event_count(0), 2U);
  EXPECT_EQ(snapshot.event(0, 1).address, 1);
  const std::string shared = "](" + pickled::event("alloc", 1, 2) + "eq\x01";
  EXPECT_TRUE(
      says(refusal(pickled::file(pickled::dict({{"segments", "]"}, {"device_traces", pickled::list({shared, "h\x01"})}}))),
           "traces share their events"));
}

TEST(Snapshot, TextsAreMendedToUtf8) {
  const Snapshot snapshot = read(pickled::snapshot({}, {pickled::event("alloc", 0, 1,
                                                                       pickled::list({pickled::frame("a\xff"
                                                                                                     "b",
                                                                                                     1)}))}));
  const auto frames = snapshot.stacks.frames(snapshot.event(0, 0).stack);
  EXPECT_EQ(snapshot.texts[snapshot.stacks.frame(frames.at(0)).function],
            "a\xEF\xBF\xBD"
            "b");
}

TEST(Snapshot, RefusesWhatIsNone) {
  EXPECT_TRUE(says(refusal(pickled::file("}")), "made.pickle: the pickle holds no memory snapshot"));
  EXPECT_TRUE(says(refusal(pickled::file("N")), "the pickle holds no memory snapshot"));
  EXPECT_TRUE(says(refusal(pickled::file(pickled::list({pickled::event("alloc", 1, 2)}))),
                   "a list of segments holds something else"));
  EXPECT_TRUE(says(refusal(pickled::file(pickled::dict({{"segments", "]"}, {"device_traces", "K\x01"}}))),
                   "device_traces is no list"));
  EXPECT_TRUE(says(refusal(pickled::snapshot({"K\x01"}, {})), "a list of segments holds something else"));
  EXPECT_TRUE(
      says(refusal(pickled::snapshot({pickled::segment(0, 8, {"K\x01"})}, {})), "a list of blocks holds something else"));
  const std::string shared = "](" + pickled::block(0, 512, "inactive", 0) + "eq\x01";
  const auto segment = [](const std::string& blocks) {
    return pickled::dict({{"address", "K\x01"}, {"total_size", "K\x01"}, {"blocks", blocks}});
  };
  EXPECT_TRUE(says(refusal(pickled::snapshot({segment(shared), segment("h\x01")}, {})), "two segments share a block"));
}

TEST(Snapshot, RefusesSizesThatCannotBe) {
  EXPECT_TRUE(says(refusal(pickled::snapshot({}, {pickled::event("alloc", 1, -5)})), "size is no address, time or count"));
  EXPECT_TRUE(says(refusal(pickled::snapshot({}, {pickled::event("alloc", -1, 5)})), "addr is no address, time or count"));
  EXPECT_TRUE(
      says(refusal(pickled::snapshot({}, {pickled::event("alloc", 1, int64_t{1} << 51)})), "more than any device has"));
  EXPECT_TRUE(says(refusal(pickled::file(pickled::event("alloc", 1, 5) + pickled::text("size") + "K\x01s")),
                   "a dict is changed after it was complete"));
}

TEST(Replay, SaysWhereAFileContradictsItself) {
  const Snapshot snapshot =
      read(pickled::snapshot({pickled::segment(0, 64 << 20, {pickled::block(0, 64 << 20, "inactive", 0)})},
                             {pickled::event("alloc", 0, 32 << 20), pickled::event("alloc", 0, 16 << 20),
                              pickled::event("alloc", int64_t{1} << 40, 4 << 20)}));
  Replay replay(snapshot, 0);
  replay.advance_to(3);
  EXPECT_EQ(replay.contradicted_bytes(), (32 << 20) + (4 << 20));
  EXPECT_EQ(replay.totals().allocated_bytes, (16 << 20) + (4 << 20));
}

// skip_actions=["free_requested"] leaves frees of one event each.
TEST(Replay, DoesNotNeedRequestedFrees) {
  const Snapshot snapshot =
      read(pickled::snapshot({pickled::segment(0, 64 << 20, {pickled::block(0, 64 << 20, "inactive", 0)})},
                             {pickled::event("free_completed", 0, 30 << 20), pickled::event("alloc", 0, 4 << 20),
                              pickled::event("free_completed", 0, 4 << 20)}));
  Replay replay(snapshot, 0);
  EXPECT_EQ(replay.totals().allocated_bytes, 30 << 20);
  replay.next();
  EXPECT_EQ(replay.totals().allocated_bytes, 0);
  EXPECT_EQ(replay.totals().cached_bytes, 64 << 20);
  replay.next();
  EXPECT_EQ(replay.totals().active_bytes, 4 << 20);
  replay.next();
  EXPECT_EQ(replay.totals().active_bytes, 0);
}

}  // namespace
}  // namespace snug
