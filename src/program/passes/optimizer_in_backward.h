#pragma once
// The optimizer in backward ("LOMO", Lv et al., 2023; torchtune's optimizer_in_bwd): each weight is updated as soon as its
// gradient is complete and nothing reads it again in this step, so the gradients of all weights never exist together.

#include "program/program.h"
#include "recipe/recipe.h"

namespace snug {

// Instead of add_optimizer(), with gradients that place_weights() placed apart. One micro-batch a step, no clipping: both
// would need all gradients at once. Adds the regions "clear", which sets the factor of gradients to 1, and "norm", which
// reports their norm.
void add_optimizer_in_backward(Program& program, const Recipe& recipe);

}  // namespace snug
