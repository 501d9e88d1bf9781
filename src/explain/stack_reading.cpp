#include "explain/stack_reading.h"

#include <algorithm>
#include <cctype>

#include "explain/stack_part.h"
#include "torch/words.h"

namespace snug {

namespace {

// The stack's Python frames, the innermost last.
Traceback traceback_of(const Snapshot& snapshot, const std::vector<FrameId>& frames) {
  Traceback traceback;
  for (auto id = frames.rbegin(); id != frames.rend(); ++id) {
    const StackFrame& frame = snapshot.stacks.frame(*id);
    const std::string_view file = snapshot.texts[frame.file];
    if (is_python_file(file))
      traceback.frames.push_back({std::string(file), frame.line, std::string(snapshot.texts[frame.function]), {}});
  }
  return traceback;
}

// "torch::autograd::generated::SoftmaxBackward0::apply(…)" -> "SoftmaxBackward0".
std::string_view node_of(std::string_view function) {
  constexpr std::string_view kGenerated = "torch::autograd::generated::";
  const size_t begin = function.find(kGenerated);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = function.substr(begin + kGenerated.size());
  const std::string_view name = rest.substr(0, rest.find("::"));
  return rest.substr(name.size()).starts_with("::apply") ? name : std::string_view();
}

constexpr std::string_view kOperator = "at::_ops::";

// Letters of the operator's name in "at::_ops::NAME::call(…)".
size_t operator_end(std::string_view name) {
  const size_t end = name.find("::", kOperator.size());
  return end == std::string_view::npos ? end : end - kOperator.size();
}

// What C++ names tell, in the order in which they decide.
struct NativeSigns {
  bool accumulates = false, engine = false, workspace = false;
  std::string_view node;
  std::vector<std::string> operators;  // the innermost first
};

NativeSigns signs_of(const Snapshot& snapshot, const std::vector<FrameId>& frames) {
  NativeSigns signs;
  for (const FrameId id : frames) {
    const std::string_view name = snapshot.texts[snapshot.stacks.frame(id).function];
    signs.accumulates = signs.accumulates || contains(name, "autograd::AccumulateGrad");
    signs.engine = signs.engine || contains(name, "torch::autograd::Engine::");
    signs.workspace = signs.workspace || contains(name, "Workspace(") || contains(name, "getCurrentCUDABlasHandle");
    if (signs.node.empty()) signs.node = node_of(name);
    if (name.starts_with(kOperator)) signs.operators.emplace_back(name.substr(kOperator.size(), operator_end(name)));
  }
  return signs;
}

bool any_frame(const Traceback& traceback, std::string_view file, std::string_view function) {
  return std::ranges::any_of(traceback.frames, [&](const Frame& frame) {
    return (file.empty() || contains(frame.file, file)) && (function.empty() || frame.function == function);
  });
}

bool makes_weights(const Traceback& t) {
  constexpr std::string_view kModule = "torch/nn/modules/module.py";
  return any_frame(t, kModule, "_apply") || any_frame(t, "torch/nn/", "__init__") || any_frame(t, "", "from_pretrained") ||
         any_frame(t, "transformers/core_model_loading.py", "") || any_frame(t, "", "reset_parameters") ||
         any_frame(t, "", "_init_sharded_param") || any_frame(t, "/_fsdp_init.py", "");  // of FSDP 2
}

Holding holding_of(const NativeSigns& signs, const Traceback& traceback, TorchStage stage) {
  if (signs.workspace) return Holding::workspaces;
  if (signs.accumulates) return Holding::gradients;
  if (any_frame(traceback, "torch/optim/", "") || any_frame(traceback, "bitsandbytes/optim/", "")) return Holding::optimizer;
  if (!signs.node.empty() || signs.engine || stage == TorchStage::backward) return Holding::backward;
  if (stage == TorchStage::optimizer) return Holding::optimizer;
  if (stage == TorchStage::loss) return Holding::loss;
  if (any_frame(traceback, "torch/nn/modules/module.py", "_call_impl")) return Holding::activations;
  if (stage == TorchStage::load || makes_weights(traceback)) return Holding::weights;
  if (stage == TorchStage::forward || stage == TorchStage::generate) return Holding::activations;
  return Holding::other;
}

// "NllLossBackward0" -> "nll_loss", as the operator is called in at::_ops.
std::string operator_of(std::string_view node) {
  node = node.substr(0, node.rfind("Backward"));
  std::string name;
  for (size_t i = 0; i < node.size(); ++i) {
    const auto letter = static_cast<unsigned char>(node[i]);
    if (std::isupper(letter) != 0 && i > 0) name += '_';
    name += static_cast<char>(std::tolower(letter));
  }
  return name;
}

// The innermost line of the user's code, unless it lies outside of a module that is a library's own.
const Frame* asking_line(const Traceback& traceback) {
  const Frame* own = traceback.own();
  if (own == nullptr) return traceback.caller();
  const auto called = std::ranges::find_if(traceback.frames, [](const Frame& frame) {
    return contains(frame.file, "torch/nn/modules/module.py") && frame.function.ends_with("_call_impl");
  });
  const bool outside = called != traceback.frames.end() && own < &*called;
  return outside ? traceback.caller() : own;
}

template <class T>
std::optional<Frame> copied(const T* frame) {
  return frame == nullptr ? std::nullopt : std::optional<Frame>(*frame);
}

}  // namespace

bool is_python_file(std::string_view file) { return file.ends_with(".py") || file.starts_with('<'); }

std::string_view name_of(Holding holding) {
  constexpr std::string_view kNames[kHoldingCount] = {
      "before recording", "weights", "gradients", "optimizer", "activations", "loss", "backward", "workspaces", "other"};
  return kNames[static_cast<size_t>(holding)];
}

namespace {

// Autograd's own thread: whatever runs there is backward, a module's forward too.
void read_engine(StackReading& reading, const CallPath& path) {
  const bool told = reading.stage.stage == TorchStage::backward && reading.holding == Holding::backward;
  reading.holding = Holding::backward;
  reading.stage.recompute = reading.stage.recompute || path.calls_module();
  if (told) return;
  reading.stage.stage = TorchStage::backward;
  reading.stage.by = reading.node.empty() ? "the autograd engine" : reading.node;
}

}  // namespace

const StackReading& StackReader::read(StackId stack) {
  const auto [place, is_new] = readings_.try_emplace(stack);
  StackReading& reading = place->second;
  if (!is_new) return reading;
  const std::vector<FrameId> frames = snapshot_.stacks.frames(stack);
  const Traceback traceback = traceback_of(snapshot_, frames);
  const NativeSigns signs = signs_of(snapshot_, frames);
  reading.stage = stage_of(&traceback, {});
  reading.holding = holding_of(signs, traceback, reading.stage.stage);
  reading.node = signs.node;
  const CallPath& path = paths_.of(stack);
  if (path.engine && reading.holding != Holding::gradients) read_engine(reading, path);
  reading.part = part_of({traceback.frames, signs.operators, signs.node, reading.stage.stage});
  reading.module = modules_.add(module_path(traceback.frames, signs.operators));
  reading.own = copied(traceback.own());
  reading.caller = copied(traceback.caller());
  reading.line = copied(asking_line(traceback));
  if (reading.stage.stage == TorchStage::unknown && (reading.holding == Holding::backward || signs.accumulates)) {
    reading.stage.stage = TorchStage::backward;
    reading.stage.by = reading.node.empty() ? "the autograd engine" : reading.node;
  }
  return reading;
}

void StackReader::count_allocations() {
  if (!allocated_.empty()) return;
  for (size_t i = 0; i < snapshot_.events.size(); ++i)
    if (const Event& event = snapshot_.events[i]; event.action == Action::alloc) allocated_[event.stack] += event.bytes;
}

const std::optional<Frame>& StackReader::forward_of(const std::string& node) {
  const auto [place, is_new] = forwards_.try_emplace(node);
  if (!is_new || node.empty()) return place->second;
  count_allocations();
  const std::string call = "at::_ops::" + operator_of(node), inner = "at::_ops::_" + operator_of(node);
  const auto calls = [&](std::string_view name, std::string_view what) {
    return name.starts_with(what) && !name.substr(what.size()).starts_with("_backward");
  };
  int64_t most = 0;
  for (const auto& [stack, bytes] : allocated_) {
    if (bytes < most) continue;
    const std::vector<FrameId> frames = snapshot_.stacks.frames(stack);
    const bool found = std::ranges::any_of(frames, [&](FrameId id) {
      const std::string_view name = snapshot_.texts[snapshot_.stacks.frame(id).function];
      return calls(name, call) || calls(name, inner);
    });
    const StackReading& reading = read(stack);
    const bool forward = reading.own && reading.node.empty() && reading.stage.stage != TorchStage::backward;
    // Of equals the lower number, so that the answer does not hang on the order of a table.
    if (!found || !forward || (bytes == most && place->second && place->second->line <= reading.own->line)) continue;
    most = bytes;
    forwards_[node] = reading.own;
  }
  return forwards_[node];
}

}  // namespace snug
