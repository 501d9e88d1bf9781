#pragma once
// Gradient checkpointing (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016): chosen layers let go of what
// their blocks would save and make it again before their backward. The ops are the same, so the bits are the same.

#include <set>
#include <vector>

#include "program/passes/saved_choice.h"
#include "program/program.h"
#include "recipe/recipe.h"

namespace snug {

// Splits the loops over layers into runs of equal treatment; what is to be away stays for offload to move. `begins`: layers
// at which a run begins for another reason. Call when differentiated. Throws std::logic_error if a block does not save what
// it is to let go of, or cannot make it again from what it keeps.
void recompute(Program& program, const SavedChoice& choice, const std::set<int64_t>& begins = {});

// The same of what the blocks of `layers` save of these parts; with none named of all, so that they keep only their input.
void recompute_blocks(Program& program, const std::vector<int64_t>& layers, const std::vector<BlockPart>& parts = {},
                      const std::set<int64_t>& begins = {});

}  // namespace snug
