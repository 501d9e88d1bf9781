#pragma once

#include "kernels/binding.h"

namespace snug::kernels {

// Products of every tile of rows with the weight of its expert, W [E, N, K]:
//   transpose_b: c [P, N] (+)= a [P, K] W^T;  neither: c [P, K] (+)= a [P, N] W;  both zero where a tile is unused.
//   transpose_a: c [E, N, K] += a [P, N]^T b [P, K], summed over each expert's rows.
// Neighbouring tiles of one expert are multiplied together: in bf16 up to cut.span of them; in fp32 span, span/2 … 1
// of them, since those products are made before step 0. workspace and cut: as for `matmul` of each such product; if
// cut.apart, which is for bf16, also for one such product of one thread in each of cut.threads equal parts.
struct ExpertMatmul {
  In a, b;
  Out c;
  const int32_t* tile_experts = nullptr;  // [P / tile], -1: unused
  int64_t routed_rows = 0, tile = 0;
  int64_t n = 0, k = 0;  // of W
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;
  Workspace workspace;
  Cut cut;
};

template <>
inline ExpertMatmul bind<ExpertMatmul>(const OpView& op) {
  const OperandView& weight = op[op.attributes.transpose_a ? Slot::c : Slot::b];
  const int64_t rows = op[Slot::a].dim(0);
  const int64_t tile = rows / op[Slot::tile_experts].elements;
  return {.a = in(op, Slot::a),
          .b = matrix(op, Slot::b),
          .c = out(op, Slot::c),
          .tile_experts = ints(op, Slot::tile_experts),
          .routed_rows = rows,
          .tile = tile,
          .n = weight.dim(1),
          .k = weight.dim(2),
          .transpose_a = op.attributes.transpose_a,
          .transpose_b = op.attributes.transpose_b,
          .accumulate = op.attributes.accumulate,
          .workspace = workspace(op),
          .cut = op.cut};
}

}  // namespace snug::kernels
