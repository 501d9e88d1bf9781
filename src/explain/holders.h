#pragma once
// What holds the memory at one moment of a replayed trace: sums by purpose, by the module in whose forward it was made and
// by the line of code that asked for it. Every active byte is counted once.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
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

// The holders that stacks belong to, each once.
class HolderTable {
 public:
  explicit HolderTable(StackReader& reader) : reader_(reader) {}

  // Of what was allocated with this stack, `older` than the trace or in it: an index of `list`.
  size_t index_of(StackId stack, bool older);

  const std::vector<Holder>& list() const { return list_; }  // without bytes, in the order of their first stack

 private:
  // Node, module, file, line, function.
  using Key = std::tuple<Holding, std::string, ModuleId, std::string, int64_t, std::string>;

  static Key key_of(const Holder& holder);
  Holder holder_of(StackId stack, bool older);

  StackReader& reader_;
  std::vector<Holder> list_;
  std::map<Key, size_t> by_key_;
  std::unordered_map<uint64_t, size_t> by_stack_;
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
