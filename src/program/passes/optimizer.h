#pragma once
// Places weights, gradients and optimizer states in flat buffers, one for each group, and adds the optimizer's ops: zero
// before the window; norm, clipping and the update after it.

#include "program/program.h"
#include "recipe/recipe.h"

namespace snug {

// Gives every weight its storage and offset: frozen weights by dtype; trained ones by dtype and by whether they decay, each
// group with a flat gradient and a flat buffer for each state that the recipe's optimizer keeps (optimizer_states.h), paged
// ones in the far home. The buffers that hold an element for each of the weight's are in the same order. With the optimizer
// in backward a gradient is a temporary of its own.
void place_weights(Program& program, const Precision& precision, const Recipe& recipe = {});

// Adds the region "optimizer" (skipped where Scalar::skip is set), in fp16 then "scale", which sets the scale of the next
// step's loss, and the clearing of gradients before the window.
void add_optimizer(Program& program, const Recipe& recipe);

}  // namespace snug
