#include "torch/stacks.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"

namespace snug {
namespace {

constexpr size_t kMostNodes = size_t{1} << 24U;

const char* const kFewerFrames = "record fewer events (max_entries=…) or Python frames only (stacks=\"python\")";

}  // namespace

FrameId Stacks::intern(const StackFrame& frame) {
  const auto fresh = static_cast<FrameId>(frames_.size());
  const uint64_t hash = hash_word(uint64_t{frame.file} << 32U | frame.function, static_cast<uint32_t>(frame.line));
  const FrameId id = frame_table_.find_or_add(hash, fresh, [&](FrameId other) { return frames_[other] == frame; });
  if (id == fresh) {
    if (fresh == kMostNodes) throw Error("more than 16 million different frames", "", kFewerFrames);
    frames_.push_back(frame);
  }
  return id;
}

StackId Stacks::extend(StackId stack, std::span<const FrameId> callers) {
  if (stack != 0 || callers.size() < 2) {
    for (const FrameId frame : callers) stack = child(stack, frame);
    return stack;
  }
  // A whole stack has nearly always been seen before: one look-up instead of one for each frame.
  uint64_t hash = callers.size();
  for (const FrameId frame : callers) hash = hash_word(hash, frame);
  const auto same = [&](StackId other) { return is(other, callers); };
  return whole_table_.find_or_make(hash, same, [&] {
    StackId made = 0;
    for (const FrameId frame : callers) made = child(made, frame);
    return made;
  });
}

std::vector<FrameId> Stacks::frames(StackId stack) const {
  std::vector<FrameId> frames;
  for (; stack != 0; stack = nodes_[stack].callee) frames.push_back(nodes_[stack].frame);
  std::reverse(frames.begin(), frames.end());
  return frames;
}

StackId Stacks::child(StackId callee, FrameId frame) {
  const auto fresh = static_cast<StackId>(nodes_.size());
  const StackId id = node_table_.find_or_add(hash_word(callee, frame), fresh, [&](StackId other) {
    return nodes_[other].callee == callee && nodes_[other].frame == frame;
  });
  if (id == fresh) {
    if (fresh == kMostNodes) throw Error("more than 16 million different stacks", "", kFewerFrames);
    nodes_.push_back({callee, frame});
  }
  return id;
}

bool Stacks::is(StackId stack, std::span<const FrameId> frames) const {
  for (size_t i = frames.size(); i > 0; --i, stack = nodes_[stack].callee)
    if (stack == 0 || nodes_[stack].frame != frames[i - 1]) return false;
  return stack == 0;
}

}  // namespace snug
