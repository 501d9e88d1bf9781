#pragma once
// What grows from round to round of a loop and is never given back: graphs that are kept alive, tensors that gather in
// lists. Rounds are those of explain/loops.h; no step has to have ended. Of many rounds the first two are warm-up.

#include <cstdint>
#include <optional>
#include <vector>

#include "explain/loops.h"
#include "explain/stack_reading.h"
#include "torch/replay.h"

namespace snug {

struct Growing {
  Holding holding = Holding::other;
  std::optional<Frame> place;
  StackId stack = 0;
  int64_t bytes_a_step = 0;   // the mean over the rounds seen
  int64_t blocks_a_step = 0;  // … of blocks
  int64_t bytes = 0;          // grown since the warm-up
};

struct Growth {
  std::vector<size_t> begins;            // events at which the rounds begin that were compared, and those between
  int64_t warm_up = 0;                   // rounds before those
  bool over = false;                     // the moment is behind the loop: it grows no more
  std::optional<int64_t> active_a_step;  // how all active bytes grow, as asked for, if they do
  int64_t kept_a_step = 0;               // by all lines that keep something, those too that keep little
  std::vector<Growing> list;             // largest first

  int64_t rounds() const { return static_cast<int64_t>(begins.size()); }  // seen in the trace; 0: none can be told apart
  int64_t bytes() const;                                                  // of the whole list
};

// Where no frames tell of loops: by the annotations of optimizers' steps; empty if there are none.
std::vector<size_t> annotated_steps(const Snapshot& snapshot, int device);

// `begins`: of the rounds, in order. Nothing grows by fewer than three of them.
Growth growth_of(const Snapshot& snapshot, int device, std::vector<size_t> begins, StackReader& reader);

}  // namespace snug
