#pragma once
// What a call stack of a memory snapshot says of the memory that was allocated there: what it is, which line of the user's
// code asked for it, and, in backward, which node of the graph. Stacks recorded with stacks="all" hold C++ names; with
// stacks="python" backward is anonymous. Names: torch/csrc/autograd, torch/optim, bitsandbytes/optim as of 2.0 to 2.11.

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "explain/call_paths.h"
#include "explain/module_tree.h"
#include "torch/snapshot.h"
#include "torch/stage.h"
#include "torch/traceback.h"

namespace snug {

// What memory is for.
enum class Holding : uint8_t {
  older,        // than the trace: weights and whatever else was there before recording began
  weights,      // made while a model was loaded, built or moved
  gradients,    // of parameters
  optimizer,    // its states, and what a step needs
  activations,  // made in forward
  loss,         // logits and cross entropy
  backward,     // made by nodes of the graph on the way back
  workspaces,   // of cuBLAS, cuDNN, NCCL
  other
};
constexpr int kHoldingCount = 9;
std::string_view name_of(Holding holding);

// True of Python's source files and of code without one ("<string>"); C++ frames name others, or none.
bool is_python_file(std::string_view file);

// What of a purpose it is, where frames or operators tell.
enum class Part : uint8_t {
  whole,      // nothing more is told
  scores,     // of attention, length x length
  logits,     // of the head and the loss, tokens x vocabulary
  cache,      // keys and values of a generation
  states,     // of an optimizer, made once
  buckets,    // of DDP's gradients
  gathered,   // weights that FSDP or ZeRO brings together
  collected,  // an evaluation's outputs, joined batch by batch
  copied      // weights in another dtype, merged, or copied to be written
};

struct StackReading {
  Holding holding = Holding::other;
  Part part = Part::whole;
  StageFound stage;
  std::optional<Frame> own;     // the innermost frame of the user's code
  std::optional<Frame> caller;  // … or of a library on top of PyTorch
  std::optional<Frame> line;    // what asked for the memory: own, but the library's line where own only calls its modules
  std::string node;             // "SoftmaxBackward0"
  ModuleId module = 0;          // whose forward this is: the innermost
};

// Reads each stack once.
class StackReader {
 public:
  explicit StackReader(const Snapshot& snapshot) : snapshot_(snapshot), paths_(snapshot) {}

  const StackReading& read(StackId stack);

  // Where forward called the operator whose backward `node` is: the user's line that allocated most there; none if no stack
  // of the trace tells.
  const std::optional<Frame>& forward_of(const std::string& node);

  const ModuleTree& modules() const { return modules_; }  // of the stacks read so far
  CallPaths& paths() { return paths_; }

 private:
  void count_allocations();

  const Snapshot& snapshot_;
  CallPaths paths_;
  ModuleTree modules_;
  std::unordered_map<StackId, StackReading> readings_;
  std::unordered_map<std::string, std::optional<Frame>> forwards_;
  std::unordered_map<StackId, int64_t> allocated_;  // bytes of all events, by stack
};

}  // namespace snug
