#pragma once
// What a plan is made for: --gpu NAME, or this machine.

#include "cli/arguments.h"
#include "plan/target.h"

namespace snug::cli {

// Throws Error naming the nearest accelerator.
Target target_for(const Arguments& arguments);

}  // namespace snug::cli
