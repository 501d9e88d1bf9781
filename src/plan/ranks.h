#pragma once
// What a rank of a plan for several sends to the others.

#include <cstdint>

#include "program/program.h"

namespace snug {

// Bytes that rank `rank` sends in the collectives of one step.
int64_t sent_to_ranks(const Program& program, int64_t rank);

}  // namespace snug
