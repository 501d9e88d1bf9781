#pragma once
// Evaluation as a Program of its own in the same arena: the forward, keeping nothing for a backward, with the loss and the
// predicted tokens at its end.

#include "program/program.h"

namespace snug {

// Adds the region "evaluate" after the step. Call after adapters are added and before differentiate().
void add_evaluation(Program& program);

}  // namespace snug
