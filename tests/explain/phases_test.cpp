// Annotations as the events that fall into them.

#include "explain/phases.h"

#include <gtest/gtest.h>

#include "torch/support_write.h"

namespace snug {
namespace {

using pickled::dict;
using pickled::integer;
using pickled::text;

std::string mark(std::string_view stage, std::string_view name, int64_t time, int64_t device = 0) {
  return dict({{"stage", text(stage)}, {"name", text(name)}, {"device", integer(device)}, {"time_us", integer(time)}});
}

// Events at 10, 20, 30 and 40 µs.
Snapshot with(const std::vector<std::string>& marks, bool timed = true) {
  std::vector<std::string> events;
  for (int64_t i = 1; i <= 4; ++i) {
    pickled::Entries entries{{"action", text("alloc")}, {"addr", integer(i << 20)}, {"size", integer(512)}, {"frames", "]"}};
    if (timed) entries.emplace_back("time_us", integer(10 * i));
    events.push_back(dict(entries));
  }
  const std::string file = pickled::file(dict({{"segments", pickled::list({})},
                                               {"device_traces", pickled::list({pickled::list(events)})},
                                               {"external_annotations", pickled::list(marks)}}));
  return read_snapshot(std::as_bytes(std::span(file)), "made");
}

TEST(Phases, NestAndKnowTheirEvents) {
  const Snapshot snapshot = with({mark("START", "outer", 15), mark("START", "inner", 20), mark("END", "inner", 30),
                                  mark("END", "outer", 99), mark("START", "elsewhere", 12, 1)});
  const std::vector<Phase> phases = phases_of(snapshot, 0);
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(snapshot.texts[phases[0].name], "outer");
  EXPECT_EQ(phases[0].first, 1u);
  EXPECT_EQ(phases[0].end, 4u);
  EXPECT_EQ(snapshot.texts[phases[1].name], "inner");
  EXPECT_EQ(phases[1].first, 1u);
  EXPECT_EQ(phases[1].end, 2u);
  EXPECT_EQ(phases[1].begin_us, 20);
  EXPECT_EQ(phases[1].end_us, 30);
}

TEST(Phases, OfOneNameEndTheLastBegunFirstAndWhatHasNoEndLastsToTheEnd) {
  const Snapshot snapshot =
      with({mark("END", "a", 5), mark("START", "a", 10), mark("START", "a", 20), mark("END", "a", 30)});
  const std::vector<Phase> phases = phases_of(snapshot, 0);
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(phases[0].end, 4u);
  EXPECT_EQ(phases[0].end_us, 40);
  EXPECT_EQ(phases[1].end, 2u);
}

TEST(Phases, NeedEventsWithTimes) {
  EXPECT_TRUE(phases_of(with({mark("START", "a", 10)}, false), 0).empty());
  EXPECT_EQ(phases_of(with({mark("START", "a", 10)}), 0).size(), 1u);
}

}  // namespace
}  // namespace snug
