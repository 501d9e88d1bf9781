#pragma once
// Loading and saving as parts of the Program. Loading streams through a planned staging buffer, saving writes straight from
// the arena, or through such a buffer from the far home, so neither raises the peak.

#include "program/program.h"

namespace snug {

constexpr int64_t kStagingBytes = int64_t{4} << 20;

// Adds "load" as the first region.
void add_load(Program& program);

// Adds "load" as the first region and "save" as the last.
void add_transfers(Program& program);

}  // namespace snug
