#pragma once
// Stacks of a memory snapshot read from the outside inwards: Python's frames alone, and whether autograd's own thread ran
// them. Loops are found by comparing such paths.

#include <unordered_map>
#include <vector>

#include "torch/snapshot.h"

namespace snug {

struct CallPath {
  std::vector<FrameId> frames;  // the outermost first
  size_t module = 0;            // how many of them stand before the first call of a module; all if none is called
  bool engine = false;          // autograd's thread: none of the program's frames are around it

  bool calls_module() const { return module < frames.size(); }
};

class CallPaths {
 public:
  // `snapshot` must outlive it.
  explicit CallPaths(const Snapshot& snapshot);

  const CallPath& of(StackId stack);

 private:
  CallPath read(StackId stack) const;

  const Snapshot& snapshot_;
  bool native_ = false;  // stacks hold C++ names
  bool framed_ = false;  // events hold stacks
  std::unordered_map<StackId, CallPath> paths_;
};

}  // namespace snug
