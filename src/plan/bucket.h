#pragma once
// A shorter bucket length's Program, for the same run in the same arena: what lives throughout the run lies where the plan
// put it, the rest in what the plan left for it. So rows padded to a few lengths need no byte more than the longest.

#include <optional>

#include "plan/plan.h"

namespace snug {

struct BucketProgram {
  Program program;
  Layout layout;
};

// The plan's recipe at `seq_len` tokens, at most the plan's; none if its layout does not fit in the plan's arena.
std::optional<BucketProgram> plan_bucket(const Plan& plan, int64_t seq_len);

}  // namespace snug
