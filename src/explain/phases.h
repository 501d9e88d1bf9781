#pragma once
// What a snapshot's annotations say was going on: "Optimizer.step#AdamW.step", a record_function of the user, with the
// events that fell into it.

#include <cstdint>
#include <vector>

#include "torch/snapshot.h"

namespace snug {

struct Phase {
  TextId name = 0;
  int64_t begin_us = 0, end_us = 0;
  size_t first = 0, end = 0;  // events at or after its begin, at or after its end
};

// In the order in which they begin, the outer first. What has no end ends with the trace. Empty if events have no times.
std::vector<Phase> phases_of(const Snapshot& snapshot, int device);

}  // namespace snug
