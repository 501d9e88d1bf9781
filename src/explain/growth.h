#pragma once
// What grows from step to step and is never given back: graphs that are kept alive, tensors that gather in lists. Steps end
// where an optimizer's step begins (PyTorch annotates it, and its frames tell); the first two are warm-up.

#include <cstdint>
#include <optional>
#include <vector>

#include "explain/stack_reading.h"
#include "torch/replay.h"

namespace snug {

struct Growing {
  Holding holding = Holding::other;
  std::optional<Frame> place;
  StackId stack = 0;
  int64_t bytes_a_step = 0;  // the mean over the steps seen
  int64_t bytes = 0;         // grown since the second step
};

struct Growth {
  int64_t steps = 0;                     // seen in the trace; 0: none can be told apart
  std::optional<int64_t> active_a_step;  // how all active bytes grow, if they do
  std::vector<Growing> list;             // largest first
};

// Events at which a step ends, in order; empty if none can be told apart.
std::vector<size_t> ends_of_steps(const Snapshot& snapshot, int device, StackReader& reader);

Growth growth_of(const Snapshot& snapshot, int device, StackReader& reader);

}  // namespace snug
