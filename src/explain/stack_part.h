#pragma once
// Which part of its purpose an allocation is, by names: of the function that asked for it, of the operator, of autograd's
// node. Names: transformers 4 and 5, TRL, peft, accelerate, bitsandbytes, PyTorch 2.0 to 2.15; in other code by what
// functions are called.

#include <span>
#include <string>
#include <string_view>

#include "explain/stack_reading.h"

namespace snug {

struct NamesOfStack {
  std::span<const Frame> frames;           // Python's, the innermost last
  std::span<const std::string> operators;  // at::_ops::NAME, the innermost first; empty if they were not recorded
  std::string_view node;                   // of autograd
  TorchStage stage = TorchStage::unknown;
};

Part part_of(const NamesOfStack& names);

}  // namespace snug
