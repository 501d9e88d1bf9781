#pragma once
// The whole answer for a memory snapshot: the moment at which memory ran out (or, where it did not, its peak), replayed from
// the trace; why, doing what, what held the memory there, what grew from step to step, what to change. The file's segments
// alone would mislead: they are those after the exception has unwound.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explain/advice.h"
#include "explain/cause.h"
#include "explain/expected.h"
#include "explain/growth.h"
#include "explain/holders.h"
#include "explain/verdict.h"

namespace snug {

enum class Moment : uint8_t { out_of_memory, peak };

struct SnapshotExplanation {
  int device = 0;
  size_t events = 0;  // in the device's trace
  Moment moment = Moment::peak;
  size_t event = 0;  // events played before it
  int64_t ooms = 0;  // times that memory ran out; the first is explained
  MemoryTotals totals;
  int64_t largest_free_bytes = 0;                  // in one piece, inside of what is reserved
  std::optional<int64_t> asked_bytes, free_bytes;  // at an oom: of the tensor, rounded; of the device
  Diagnosis diagnosis;
  StageFound stage;
  std::optional<Frame> own, caller;  // of the allocation that failed, or of the last before the peak
  Holders holders;
  std::vector<Loop> loops;  // that hold the moment, the outermost first
  Course course;            // of the outermost that computes
  Growth growth;
  Verdict verdict;  // at an oom
  std::vector<Advice> advice;
  bool has_frames = false;
};

// Of the device whose memory ran out, else of the one that holds most. `expected`: of its recipe; null: not known. Throws
// Error if the file holds no memory at all.
SnapshotExplanation explain_snapshot(const Snapshot& snapshot, const Expected* expected = nullptr);

}  // namespace snug
