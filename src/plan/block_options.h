#pragma once
// What a block may keep of its saved tensors, at which price: bytes for each layer against the seconds that making the rest
// again takes, or having it wait on disk where copies take longer than what they run beside. Choosing one option for each
// block under a budget is a multiple-choice knapsack (Kellerer, Pferschy, Pisinger, 2004, ch. 11), whose linear relaxation
// uses neighbours on the lower convex hull alone.

#include <optional>
#include <set>
#include <vector>

#include "plan/cost.h"
#include "program/program.h"

namespace snug {

struct BlockOption {
  std::set<StorageId> released, away;
  int64_t kept_bytes = 0;  // of a layer, with its share of the windows through which what is away is seen
  double seconds = 0;      // of a layer: what is done again, and waited for
};

// Where saved tensors may wait.
struct FarHome {
  Home home = Home::disk;
  int64_t input_bytes = 0;  // of a layer: its input, which goes there in any case
};

// The options of the blocks of this run (index into Program::blocks, before any of them is recomputed) that none beats in
// both: from all kept down to the least, slower and slower; of two that take the same the one that moves less. Of many saved
// tensors the smallest are kept, let go or moved together. `most_choices`: tensors, or groups of small ones, of which every
// subset is looked at; 0: so many that it takes a millisecond or two.
std::vector<BlockOption> block_options(const Program& program, int32_t block, const CostModel& cost,
                                       const std::optional<FarHome>& far = {}, size_t most_choices = 0);

// Indices of those on the lower convex hull, the first and the last among them.
std::vector<size_t> lower_hull(const std::vector<BlockOption>& options);

}  // namespace snug
