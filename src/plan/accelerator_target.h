#pragma once
// The Target that an accelerator of the catalogue is: its memory, what lies outside the arena, and its rates. None of it was
// measured on the card itself; a plan says so.

#include "plan/accelerators.h"
#include "plan/target.h"

namespace snug {

Target target_of(const Accelerator& accelerator);

}  // namespace snug
