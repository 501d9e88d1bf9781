#pragma once
// The loops of a stage that has several chunks of layers.

#include "program/passes/pipeline_parts.h"

namespace snug {

// Fills `all`, the region of a step's micro-batches, with the parts in the order of pipeline_order.h. What passes from one
// part to another gets an instance for each micro-batch on its way.
void interleave(Program& program, Region& all, ChunkParts parts);

}  // namespace snug
