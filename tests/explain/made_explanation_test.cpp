// Snapshots of every kind that PyTorch writes (tests/oracle/make_snapshots.py), explained.

#include <gtest/gtest.h>

#include "base/error.h"
#include "explain/snapshot_explanation.h"
#include "torch/support_write.h"

namespace snug {
namespace {

Snapshot made(const std::string& name) {
  return read_snapshot(SNUG_SOURCE_DIR "/tests/golden/snapshots/" + name + ".pickle");
}

class MadeExplanation : public ::testing::TestWithParam<std::string> {};

TEST_P(MadeExplanation, AccountsForEveryActiveByte) {
  const SnapshotExplanation e = explain_snapshot(made(GetParam()));
  int64_t held = 0, listed = 0;
  for (const int64_t bytes : e.holders.by_holding) held += bytes;
  for (const Holder& holder : e.holders.list) listed += holder.bytes;
  EXPECT_EQ(held, e.totals.active_bytes);
  EXPECT_EQ(listed, e.totals.active_bytes);
  EXPECT_GT(e.totals.active_bytes, 0);
  EXPECT_LE(e.totals.active_bytes, e.totals.reserved_bytes);
  EXPECT_FALSE(e.diagnosis.answer.empty());
}

INSTANTIATE_TEST_SUITE_P(Cases, MadeExplanation,
                         ::testing::Values("ring", "unnamed_pools", "expandable_pools", "large_segments", "collected",
                                           "graphs", "capturing_expandable", "skipped", "two_devices", "without_frames",
                                           "xpu", "old"),
                         [](const auto& name) { return name.param; });

bool remarks(const SnapshotExplanation& e, const std::string& words) {
  for (const std::string& remark : e.diagnosis.remarks)
    if (remark.find(words) != std::string::npos) return true;
  return false;
}

TEST(MadeExplanations, memory_that_a_graph_keeps_is_told) {
  const SnapshotExplanation e = explain_snapshot(made("capturing"));
  EXPECT_TRUE(remarks(e, "free in private pools"));
  EXPECT_GE(e.largest_free_bytes, *e.asked_bytes);
  EXPECT_TRUE(remarks(e, "belongs to another stream or pool"));
  const SnapshotExplanation captured = explain_snapshot(made("graphs"));  // 200 MiB in a capture, of 210 MiB cached outside
  EXPECT_EQ(captured.asked_bytes, int64_t{200} << 20);
  EXPECT_TRUE(remarks(captured, "came from a private pool"));
  EXPECT_FALSE(remarks(explain_snapshot(made("fragmentation")), "pool"));
  EXPECT_FALSE(remarks(explain_snapshot(made("mixed")), "free in private pools"));
}

TEST(MadeExplanations, a_setting_that_is_not_known_is_named) {
  EXPECT_TRUE(remarks(explain_snapshot(made("xpu")), "a_setting_of_tomorrow is not known"));
  EXPECT_FALSE(remarks(explain_snapshot(made("large_segments")), "is not known"));
}

TEST(MadeExplanations, cuda_malloc_async_has_no_segments_and_the_answer_says_so) {
  const std::string settings = pickled::dict({{"PYTORCH_CUDA_ALLOC_CONF", pickled::text("backend:cudaMallocAsync")}});
  const std::string file = pickled::file(pickled::dict(
      {{"segments", pickled::list({})}, {"device_traces", pickled::list({})}, {"allocator_settings", settings}}));
  const Snapshot snapshot = read_snapshot(std::as_bytes(std::span(file)), "made.pickle");
  try {
    explain_snapshot(snapshot);
    FAIL() << "nothing is there to explain";
  } catch (const Error& error) {
    EXPECT_NE(error.problem().find("cudaMallocAsync"), std::string::npos);
  }
}

}  // namespace
}  // namespace snug
