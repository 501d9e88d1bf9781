#pragma once
// What torch.cuda.memory_summary() and memory_stats() print: the table, and the dictionary in any of the ways in which
// Python prints it. Figures of the table are cut down to whole units, so they are a little less than they were.

#include <cstdint>
#include <optional>
#include <string_view>

namespace snug {

struct MemoryFigure {
  std::optional<int64_t> now, peak;  // bytes
};

struct MemorySummary {
  int device = -1;  // -1 if it does not say
  MemoryFigure allocated, active, requested, reserved, non_releasable;
  std::optional<int64_t> retries;  // cudaMalloc failed, the cache was emptied, and it was tried again
  std::optional<int64_t> ooms;
};

// The last table or dictionary in `text`; none if there is none.
std::optional<MemorySummary> read_memory_summary(std::string_view text);

}  // namespace snug
