#pragma once
// What a CPU does to an op: how it is cut, and how much workspace its kernel may use, as functions of shapes, dtypes and
// threads. These are the numbers that the plan dictates; the kernels carve their workspace as written here and never use
// more. The op table proves it.

#include <cstdint>

#include "op/view.h"

namespace snug::cpu {

// What it is cut for.
struct Machine {
  int32_t threads = 1;
  Arithmetic products = Arithmetic::fp32;  // the most it has: bf16 for bf16 operands, bf16_pieces for f16 too
  bool generates = false;                  // single tokens rather than batches
};

struct OpSizing {
  OpCut (*cut)(const OpView& op, const Machine& machine);
  int64_t (*workspace)(const OpView& op, const Machine& machine);  // bytes; 0: none
};
const OpSizing& sizing_of(OpKind kind);

// Rows split over the threads.
OpCut even_cut(const OpView& op, const Machine& machine);

// Those that are not even and without workspace: each in the file that knows it.
namespace sizing {
#define SNUG_SIZING_even(kind)
#define SNUG_SIZING_own(kind) extern const OpSizing kind;
#define SNUG_SIZING(kind, run_by, sizing) SNUG_SIZING_##sizing(kind)
SNUG_OP_KINDS(SNUG_SIZING)
#undef SNUG_SIZING
#undef SNUG_SIZING_own
#undef SNUG_SIZING_even
}  // namespace sizing

}  // namespace snug::cpu
