#pragma once
// Call stacks held once each: a trie whose paths start at the innermost frame, so that a stack is one number and stacks that
// end alike share what they share. Millions of events have a few thousand stacks.

#include <cstdint>
#include <span>
#include <vector>

#include "torch/id_table.h"
#include "torch/texts.h"

namespace snug {

struct StackFrame {
  TextId file = 0, function = 0;
  int32_t line = 0;
  bool operator==(const StackFrame&) const = default;
};

using FrameId = uint32_t;
using StackId = uint32_t;  // 0: the empty stack

class Stacks {
 public:
  FrameId intern(const StackFrame& frame);

  // `stack` continued by `callers`, the innermost of them first.
  StackId extend(StackId stack, std::span<const FrameId> callers);

  // Innermost first, as PyTorch writes them.
  std::vector<FrameId> frames(StackId stack) const;

  const StackFrame& frame(FrameId id) const { return frames_[id]; }
  size_t frame_count() const { return frames_.size(); }

  // The stack without its outermost frame.
  StackId callee(StackId stack) const { return nodes_[stack].callee; }
  FrameId outermost(StackId stack) const { return nodes_[stack].frame; }  // of a stack that is not empty

  size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    StackId callee;
    FrameId frame;
  };

  StackId child(StackId callee, FrameId frame);
  bool is(StackId stack, std::span<const FrameId> frames) const;

  std::vector<StackFrame> frames_;
  std::vector<Node> nodes_{{0, 0}};
  IdTable frame_table_, node_table_, whole_table_;
};

}  // namespace snug
