#pragma once
// Ops that ranks run together, or with a neighbour. On the comm lane they go on beside what computes; on the compute lane
// they are waited for.

#include "program/program.h"

namespace snug {

struct Together {
  RankGroup group = RankGroup::all;
  Lane lane = Lane::comm;
};

// x += that of all others in the group.
Op all_reduce(Program& program, TensorId x, Together together);
// out = this rank's part of the group's sum of x, or += where it `accumulates`; x is used up. `out` may lie in x.
Op reduce_scatter(Program& program, TensorId x, TensorId out, bool accumulates, Together together);
// out = all parts x of the group, one after the other. `x` may lie in out.
Op all_gather(Program& program, TensorId x, TensorId out, Together together);

// out = x of the rank before in the group's ring, while the own goes to the next.
Op pass_on(const Program& program, TensorId x, TensorId out, Together together);

// x goes to the next rank of the group, which receives it into its x.
Op send(const Program& program, TensorId x, Together together);
Op receive(const Program& program, TensorId x, Together together);

}  // namespace snug
