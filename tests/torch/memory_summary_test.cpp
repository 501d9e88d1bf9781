#include "torch/memory_summary.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "torch/oom_log.h"
#include "torch/profiler_trace.h"
#include "torch/support_oom_texts.h"

namespace snug::torch_tests {

namespace {

std::string golden(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(SNUG_SOURCE_DIR "/tests/golden/torch/" + name).rdbuf();
  return text.str();
}

}  // namespace

TEST(MemorySummary, TheTableIsReadInWholeUnits) {
  const auto s = read_memory_summary(read_oom_log("step 1\n" + golden("memory_summary.txt")).head);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->device, 0);
  EXPECT_EQ(s->ooms, 1);
  EXPECT_EQ(s->retries, 2);
  EXPECT_EQ(s->allocated.now, gib(8));
  EXPECT_EQ(s->allocated.peak, gib(10));
  EXPECT_EQ(s->requested.now, mib(8187));
  EXPECT_EQ(s->requested.peak, mib(10239));
  EXPECT_EQ(s->reserved.now, gib(11));
  EXPECT_EQ(s->reserved.peak, gib(12));
  EXPECT_EQ(s->non_releasable.now, gib(3));
  EXPECT_EQ(s->non_releasable.peak, mib(700));
}

TEST(MemorySummary, TheDictionaryIsReadToTheByteHoweverItIsPrinted) {
  const std::string text = golden("memory_stats.txt");
  std::string json = text, pairs = text;
  for (char& c : json) c = c == '\'' ? '"' : c;
  for (size_t at = pairs.find("': "); at != std::string::npos; at = pairs.find("': ", at)) pairs.replace(at, 3, "', ");
  for (const std::string& form : {text, json, pairs}) {
    const auto s = read_memory_summary(form);
    ASSERT_TRUE(s);
    EXPECT_EQ(s->device, -1);
    EXPECT_EQ(s->requested.peak, gib(10) - 123);
    EXPECT_EQ(s->reserved.now, gib(11));
    EXPECT_EQ(s->non_releasable.peak, mib(700));
    EXPECT_EQ(s->ooms, 1);
    EXPECT_EQ(s->retries, 2);
  }
}

TEST(MemorySummary, CutAnywhereItSaysNothingElse) {
  const std::string text = golden("memory_summary.txt");
  for (size_t length = 0; length < text.size(); ++length)
    if (const auto s = read_memory_summary(std::string_view(text).substr(0, length))) {
      EXPECT_TRUE(!s->reserved.peak || s->reserved.peak == gib(12)) << length;
      EXPECT_TRUE(!s->retries || s->retries == 2) << length;
    }
  EXPECT_FALSE(read_memory_summary("no table here\n"));
}

TEST(MemorySummary, TheProfilersOwnTraceIsRead) {
  ProfilerTraceReader reader;
  const std::string text = golden("profiler_trace.json");
  ASSERT_TRUE(looks_like_trace(text));
  reader.feed(text);
  const ProfilerTrace trace = reader.finish();
  EXPECT_TRUE(trace.whole);
  ASSERT_EQ(trace.devices.size(), 1u);
  EXPECT_EQ(trace.devices[0].type, 0);
  EXPECT_EQ(trace.devices[0].events, 4);
  EXPECT_EQ(trace.devices[0].largest_bytes, mib(4));
  EXPECT_EQ(trace.devices[0].peak_allocated_bytes, mib(6));
  EXPECT_EQ(trace.devices[0].last_allocated_bytes, mib(3));
}

}  // namespace snug::torch_tests
