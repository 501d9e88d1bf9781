#pragma once
// Where the real snapshots are, and small helpers.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "torch/replay.h"
#include "torch/snapshot.h"

namespace snug {

inline std::filesystem::path real_snapshot(const std::string& name) {
  const char* shared = std::getenv("SNUG_SHARED");
  const std::filesystem::path root = shared != nullptr ? shared : SNUG_SOURCE_DIR "/../shared";
  return root / "data/snapshots" / name;
}

inline const std::vector<std::string> kRealSnapshots = {"gpt_medium_ctx1024_training.pickle",
                                                        "gpt_medium_ctx128_inference.pickle"};

// What lies at a moment of a replay, as the allocator would find it; one stream, one pool, as in the real files.
inline std::vector<Segment> layout_of(const Replay& replay) {
  std::vector<Segment> segments;
  for (const auto& [start, extent] : replay.segments()) {
    Segment segment;
    segment.address = start;
    segment.bytes = extent.bytes;
    segment.small = extent.small;
    segment.expandable = extent.expandable;
    int64_t end = start;
    const auto gap = [&](int64_t until) {
      if (until > end) segment.blocks.push_back({end, until - end, 0, 0, BlockState::inactive});
      end = until;
    };
    for (auto live = replay.live().lower_bound(start); live != replay.live().end() && live->first < start + extent.bytes;
         ++live) {
      gap(live->first);
      segment.blocks.push_back(
          {live->first, live->second.bytes, live->second.requested_bytes, live->second.stack, BlockState::allocated});
      end = live->first + live->second.bytes;
    }
    gap(start + extent.bytes);
    segments.push_back(segment);
  }
  return segments;
}

}  // namespace snug
