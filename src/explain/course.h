#pragma once
// How the rounds of a loop went on the device: what each began with, its peak, and how far the round of the moment had come
// when the earlier ones were there. From those that ended follows what the rest of this one would still have taken.

#include <cstdint>
#include <optional>
#include <vector>

#include "explain/call_paths.h"
#include "torch/replay.h"

namespace snug {

// Bytes are active ones.
struct Round {
  size_t begin = 0, end = 0;    // events
  size_t there = 0;             // the event at which it came to where the moment stands
  int64_t begin_bytes = 0;      // at its begin
  int64_t peak_bytes = 0;       // the most in it
  bool matched = false;         // it came to where the moment stands: the same stack, for the same time in the round
  int64_t requested_bytes = 0;  // asked for in all from its begin to there
  int64_t there_bytes = 0;      // held there
  int64_t further_bytes = 0;    // how much more than there it held at most from there to its end
};

struct Course {
  std::vector<Round> rounds;  // the last is the moment's own, which has no end
  // What the round would have held more than at the moment, at most, up to its end; none if no earlier round tells.
  std::optional<int64_t> further_bytes;
  double size_ratio = 1;     // of what the round asked for up to the moment, to the largest of those that ended
  bool lengthening = false;  // the rounds before asked for more each time

  const Round& now() const { return rounds.back(); }
};

// `begins` of the rounds, in order; the last holds `moment`. Empty if there are none.
Course course_of(const Snapshot& snapshot, int device, const std::vector<size_t>& begins, size_t moment);

}  // namespace snug
