#include "explain/call_paths.h"

#include <algorithm>

#include "explain/stack_reading.h"
#include "torch/traceback.h"
#include "torch/words.h"

namespace snug {

namespace {

bool is_module_call(const Snapshot& snapshot, FrameId id) {
  const StackFrame& frame = snapshot.stacks.frame(id);
  return contains(snapshot.texts[frame.file], "torch/nn/modules/module.py") &&
         contains(snapshot.texts[frame.function], "_call_impl");
}

// Threads of the program begin in its script or in Python's own start; autograd's begin with what it calls: hooks,
// Functions.
bool begins_in_torch(const Snapshot& snapshot, FrameId outermost) {
  const StackFrame& frame = snapshot.stacks.frame(outermost);
  const std::string_view file = snapshot.texts[frame.file], function = snapshot.texts[frame.function];
  return is_pytorchs(file) && !contains(function, "<module>") && !contains(file, "/torch/distributed/");
}

}  // namespace

CallPaths::CallPaths(const Snapshot& snapshot) : snapshot_(snapshot) {
  constexpr StackId kTried = 256;  // stacks recorded with C++ names hold them everywhere
  for (StackId stack = 1; stack < std::min<size_t>(snapshot.stacks.size(), kTried) && !native_; ++stack)
    native_ = contains(snapshot.texts[snapshot.stacks.frame(snapshot.stacks.outermost(stack)).function], "::");
  for (const EventRange& trace : snapshot.traces)
    for (size_t i = trace.first; i < trace.first + trace.count && !framed_; ++i)
      framed_ = snapshot.events[i].action == Action::alloc && snapshot.events[i].stack != 0;
}

const CallPath& CallPaths::of(StackId stack) {
  const auto [place, is_new] = paths_.try_emplace(stack);
  if (is_new) place->second = read(stack);
  return place->second;
}

CallPath CallPaths::read(StackId stack) const {
  CallPath path;
  bool thread = false;
  for (const FrameId id : snapshot_.stacks.frames(stack)) {
    const StackFrame& frame = snapshot_.stacks.frame(id);
    if (is_python_file(snapshot_.texts[frame.file])) path.frames.push_back(id);
    thread = thread || contains(snapshot_.texts[frame.function], "Engine::thread_main");
  }
  std::ranges::reverse(path.frames);
  const auto called = std::ranges::find_if(path.frames, [&](FrameId id) { return is_module_call(snapshot_, id); });
  path.module = static_cast<size_t>(called - path.frames.begin());
  // Without C++ names a stack of autograd's thread is empty, or begins in the middle of PyTorch.
  path.engine = thread || (framed_ && !native_ && (path.frames.empty() || begins_in_torch(snapshot_, path.frames.front())));
  return path;
}

}  // namespace snug
