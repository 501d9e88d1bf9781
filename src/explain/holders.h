#pragma once
// What holds the memory at one moment of a replayed trace: sums by purpose, by the module in whose forward it was made and
// by the line of code that asked for it. Every active byte is counted once.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explain/module_tree.h"
#include "explain/stack_reading.h"
#include "torch/replay.h"

namespace snug {

// All that one line in one module, or one node of backward, holds for one purpose.
struct Holder {
  Holding holding = Holding::other;
  std::optional<Frame> place;    // none: no line of Python is known
  ModuleId module = 0;           // in whose forward; 0: the stack shows none
  std::string node;              // of backward
  std::optional<Frame> forward;  // where forward called what the node goes back through
  int64_t bytes = 0, blocks = 0;
};

struct Holders {
  std::array<int64_t, kHoldingCount> by_holding{};  // bytes; sums to the active bytes
  std::vector<Holder> list;                         // largest first
  ModuleTree tree;
  std::vector<ModuleSum> modules;  // of `tree`, each before those inside of it
};

Holders holders_of(const Replay& replay, StackReader& reader);

// "train.py:88 in main", "SoftmaxBackward0, of model.py:47 in attend", "not known".
std::string text_of(const Holder& holder);

}  // namespace snug
