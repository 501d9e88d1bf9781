#pragma once
// Which device a plan is for where no name says it.

#include <cstdint>

#include "plan/target.h"

namespace snug {

// The CUDA card of the catalogue whose memory is nearest, with exactly that memory: its rates rank changes by time. A card
// before Ampere only where no later one has about as much.
Target nearest_target(int64_t capacity_bytes);

}  // namespace snug
