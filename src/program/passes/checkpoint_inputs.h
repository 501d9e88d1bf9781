#pragma once
// Binomial checkpointing of what blocks are handed (Griewank & Walther, "Algorithm 799: revolve", 2000), with every block
// run forward once more at most for it: of some blocks the input is kept, and from it those of the blocks behind are made
// again when backward comes to them. The ops are the same, so the bits are the same.

#include <cstdint>
#include <vector>

#include "program/program.h"

namespace snug {

// Blocks in a row, of which the first one's input is kept.
struct BlockSegment {
  int64_t first = 0, count = 0;
};

// Segments of blocks with which `inputs` of them are there at once at most, the fewest blocks run once more: long ones
// first, because backward comes to them when the kept inputs behind are gone. None reaches beyond one of `loops`, the layers
// of each run of like blocks. Throws Error, naming the fewest that do, where `inputs` are too few.
std::vector<BlockSegment> segments_of(const std::vector<int64_t>& loops, int64_t inputs);

// The fewest inputs that `segments_of` takes.
int64_t fewest_inputs(const std::vector<int64_t>& loops);

// The layers at which loops must be split for `checkpoint_inputs`.
std::vector<int64_t> borders_of(const std::vector<BlockSegment>& segments);

// Call when every block keeps its input alone, loops split at the borders of `segments`.
void checkpoint_inputs(Program& program, const std::vector<BlockSegment>& segments);

}  // namespace snug
