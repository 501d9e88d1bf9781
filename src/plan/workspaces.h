#pragma once
// Cuts every op for a Target and gives it the workspace that the target dictates; what is paged goes where the target has
// room.

#include "plan/target.h"
#include "program/program.h"

namespace snug {

void fit_to_target(Program& program, const Target& target);

// Distinct products a backend will prepare for this Program.
int64_t distinct_products(const Program& program);

}  // namespace snug
