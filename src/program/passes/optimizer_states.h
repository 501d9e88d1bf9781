#pragma once
// What each optimizer keeps of a weight beside its gradient: slots, dtypes and shapes. It knows no buffer and no offset.

#include <vector>

#include "program/program.h"
#include "recipe/recipe.h"

namespace snug {

// One state of one weight, as a tensor of its own before it is placed.
struct StateShape {
  Slot slot;
  const char* name;  // in files: PyTorch's, transformers' or bitsandbytes' name for it
  DType dtype;
  std::vector<Extent> shape;
};

// The states that `recipe`'s optimizer keeps of `weight`, in the order of its op's operands; then the fp32 master copy of a
// weight whose tensor, `stored`, has another dtype, if `precision` keeps one.
std::vector<StateShape> optimizer_states(const Weight& weight, const Tensor& stored, const Precision& precision,
                                         const Recipe& recipe);

// Whether these states are codes in blocks of kStateBlock elements: of large weights alone, as in bitsandbytes.
bool keeps_blocks(const Weight& weight, const Recipe& recipe);

}  // namespace snug
