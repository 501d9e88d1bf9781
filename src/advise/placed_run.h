#pragma once
// A device map that snug itself runs: memory of the host and room on a disk. What a block has of matrices, and in full
// fine-tuning their gradients and states, lies on the disk and is fetched for its turn; all else stays in memory.

#include <vector>

#include "advise/max_memory.h"
#include "plan/plan.h"

namespace snug {

// Whether a map is for this engine: it names no accelerator.
bool is_of_the_host(const std::vector<DeviceRoom>& rooms);

// The plan that fits with the fewest blocks on the disk, the last ones; in full fine-tuning none or all. Its recipe has the
// keys that say so. Where nothing fits: the plan with the most of them there, which does not. Throws Error for a map with an
// accelerator or without the host, and for a recipe that says itself what lies on disk.
Plan place_run(const ModelSpec& model, const Recipe& recipe, const Target& target, const std::vector<DeviceRoom>& rooms);

}  // namespace snug
