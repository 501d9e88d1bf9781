#pragma once
// Views of flat buffers that ranks cut among them: a unit's whole, a rank's own part, and what a collective reads and writes
// of them.

#include "program/program.h"

namespace snug {

// This rank's part of a unit of the buffer that `view` lies in, in the layer whose turn it is.
TensorId own_part(Program& program, TensorId view, size_t unit);
// All of a unit of a buffer that every rank holds whole.
TensorId whole_unit(Program& program, TensorId view, size_t unit);

// The loop over the unit's layers, or a region that runs once.
Region unit_loop(const Unit& unit, const char* name, Stage stage);

// x += that of all others in the group.
Op all_reduce(Program& program, TensorId x, RankGroup group);
// out = this rank's part of the sum over its replica of x, or += where it `accumulates`; x is used up. `out` may lie in x.
Op reduce_scatter(Program& program, TensorId x, TensorId out, bool accumulates);
// out = all parts x of its replica, one after the other. `x` may lie in out.
Op all_gather(Program& program, TensorId x, TensorId out);

}  // namespace snug
