#pragma once
// The loops of the program that were running at one moment, found from the lines of its stacks alone: training steps,
// batches of an evaluation, tokens of a generation. No optimizer is needed, and no step has to have ended. The layers of a
// model are no loop here: what happens inside of a module's forward is one pass.

#include <cstdint>
#include <optional>
#include <vector>

#include "explain/call_paths.h"
#include "torch/traceback.h"

namespace snug {

struct Loop {
  std::vector<size_t> begins;  // events at which its rounds begin, in order; the last round holds the moment
  bool computes = false;       // modules are called in a round
  bool left = false;           // the moment is at a line that no round before came to: behind the loop, or once in a while
  Frame place;                 // the function that holds it, at the line where a round begins
};

// Those that hold `moment` (events played before it), the outermost first.
std::vector<Loop> loops_at(const Snapshot& snapshot, int device, size_t moment, CallPaths& paths);

}  // namespace snug
