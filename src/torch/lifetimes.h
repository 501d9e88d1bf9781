#pragma once
// The trace as lives: every block and every stretch of reserved memory from the first position of a replay (events played)
// at which it is there to the first at which it is not. Lives are told as they end, so that millions of them need no memory;
// what is live at any position adds up to what replay.h says there.

#include <cstdint>
#include <functional>

#include "torch/replay.h"

namespace snug {

// Of one size: a block of which the trace shows later that it is larger has two lives that meet.
struct BlockLife {
  int64_t address = 0, bytes = 0;
  StackId stack = 0;
  bool older = false;                    // than the trace
  size_t first = 0, asked = 0, end = 0;  // asked: freed from here on, though another stream may still use it
};

struct ReservedLife {
  int64_t address = 0, bytes = 0;
  bool expandable = false, small = false;  // expandable ones that touch are one segment
  size_t first = 0, end = 0;
};

struct LifeSinks {
  std::function<void(const BlockLife&)> block;
  std::function<void(const ReservedLife&)> reserved;
};

// What is there at the last position ends one behind it.
void tell_lives(const Snapshot& snapshot, int device, const LifeSinks& sinks);

}  // namespace snug
