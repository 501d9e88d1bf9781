#pragma once
// What a block may keep of its saved tensors, at which price: bytes for each layer against the seconds that making the rest
// again takes. Choosing one option for each block under a budget is a multiple-choice knapsack (Kellerer, Pferschy,
// Pisinger, 2004, ch. 11), whose linear relaxation uses neighbours on the lower convex hull alone.

#include <set>
#include <vector>

#include "plan/cost.h"
#include "program/program.h"

namespace snug {

struct BlockOption {
  std::set<StorageId> released;
  int64_t kept_bytes = 0;  // of a layer
  double seconds = 0;      // of a layer: what is done again
};

// The options of the blocks of this run (index into Program::blocks, before any of them is recomputed) that none beats in
// both: from all kept down to the least, slower and slower. Of many saved tensors the smallest are kept or let go together.
// `most_choices`: tensors, or groups of small ones, of which every subset is looked at.
inline constexpr size_t kMostChoices = 12;
std::vector<BlockOption> block_options(const Program& program, int32_t block, const CostModel& cost,
                                       size_t most_choices = kMostChoices);

// Indices of those on the lower convex hull, the first and the last among them.
std::vector<size_t> lower_hull(const std::vector<BlockOption>& options);

}  // namespace snug
