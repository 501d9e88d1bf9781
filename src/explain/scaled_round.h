#pragma once
// The rest of a round, written down event by event from an earlier one with a batch of another size: what grows with the
// batch, and how fast, is told by a third one of yet another size.

#include <cstdint>
#include <optional>

#include "torch/snapshot.h"

namespace snug {

// Events of a round; `there` is where it came to the place that the moment stands at.
struct RoundEvents {
  size_t begin = 0, there = 0, end = 0;
};

// How much more than at the moment the round `now` would hold at most, up to its end; none where sizes do not tell. `other`
// may be `near` itself: then all but what lasts grows with the batch.
std::optional<int64_t> further_by_scaling(const Snapshot& snapshot, int device, const RoundEvents& now,
                                          const RoundEvents& near, const RoundEvents& other);

}  // namespace snug
