#pragma once
// Ops that go through flat buffers from end to end, where some of these lie far: in chunks that come and go through planned
// windows (as bitsandbytes pages its states, here by reads and writes that the plan knows).

#include "program/program.h"

namespace snug {

// Elements of a buffer that a window holds: a multiple of kStateBlock and kSquareSumBlock, so that blocks stay whole.
constexpr int64_t kPagedElements = int64_t{1} << 19;

// The whole of a flat buffer as one vector, seen through one of the views in it.
TensorId whole_buffer(Program& program, TensorId view);

// Adds an op on whole buffers of `elements` to `sink`; scalars are no buffer. Where a buffer lies far the op runs chunk
// after chunk: what it reads of such a one is fetched before, what it writes is sent behind.
void add_in_pages(Program& program, Region& sink, const Op& op, int64_t elements);

}  // namespace snug
