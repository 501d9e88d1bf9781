#pragma once
// Which module's forward a stack of a memory snapshot runs in. A snapshot holds files, lines and function names, no classes:
// a module is known by its kind where its file tells it (torch/nn/modules, bitsandbytes/nn, peft/tuners), else by the file
// of its forward; siblings of one kind are told apart by the line that calls them. Names as of PyTorch 1.13 to 2.15,
// transformers 4 and 5, peft, bitsandbytes, accelerate, Unsloth.

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "torch/traceback.h"

namespace snug {

// One module on the way from the outermost inwards.
struct ModuleCall {
  std::string name;   // "Linear", "LoRA", "LlamaAttention"; the file of its forward where the kind is not told: "model.py"
  bool kind = false;  // the name is a kind, not a file
  std::string file;   // of its forward
  std::string caller_file;  // the line that called it; empty and 0: not known
  int64_t caller_line = 0;
  auto operator<=>(const ModuleCall&) const = default;
};

using ModulePath = std::vector<ModuleCall>;

// The modules whose forward runs in a stack, the outermost first, at most 64 of them. `frames`: Python's, the innermost
// last; `operators`: what C++ frames name at::_ops::NAME, which tells an activation's kind.
ModulePath module_path(std::span<const Frame> frames, std::span<const std::string> operators);

// "modeling_llama.py:842 › :590 › :331 › :157 › LoRA:799 › Linear": each module with the line at which it calls the next,
// the innermost by its kind. Empty for an empty path.
std::string text_of(const ModulePath& path);

}  // namespace snug
