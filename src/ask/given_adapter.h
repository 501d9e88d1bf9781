#pragma once
// The adapter that a run starts from: what it says of itself is the recipe's.

#include "ask/arguments.h"

namespace snug {

// Rank, scale, targets and variant are the adapter's; so is its dropout unless the recipe has another. They count as said.
// Throws Error where there is no adapter of PEFT's, a key says another, or the method trains none.
void take_given_adapter(Arguments& arguments);

}  // namespace snug
