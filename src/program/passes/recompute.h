#pragma once
// Gradient checkpointing (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016) of whole blocks: chosen layers
// keep only their input and run their forward again before their backward. The ops are the same, so the bits are the same.

#include <vector>

#include "program/program.h"

namespace snug {

// `layers`: which blocks to recompute, ascending, without repeats. Splits the layer loops into runs of equal treatment.
void recompute_blocks(Program& program, const std::vector<int64_t>& layers);

}  // namespace snug
