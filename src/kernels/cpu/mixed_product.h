#pragma once
// c[m, n] (+)= scale * a[m, k] b[k, n] in bf16, where at least one of a and b is bf16 or f16. fp32 beside bf16 is rounded to
// bf16. f16, and fp32 beside it, are multiplied as two bf16 pieces (Henry, Tang & Heinecke, "Leveraging the bfloat16
// Artificial Intelligence Datatype For Higher-Precision Computations", 2019), exact to 2^-16 an operand in fp32, exact in
// f16. Sums are fp32.
//
// workspace = [b panel: pieces of depth x cols][c panel: fp32, m x cols, where sums over several depths do not fit in c]
// [for each thread: a block, and a tile of c, two where c is turned], as program/ops/mixed_workspace.cpp states it.

#include <cstdint>

#include "kernels/cpu/pieces.h"
#include "kernels/operands.h"

namespace snug::kernels {

struct MixedProduct {
  MatrixView a, b;  // [m, k], [k, n]
  Out c;
  int64_t c_stride = 0;
  bool c_turned = false;  // stored as [n, m]
  bool accumulate = false;
  float scale = 1.0F;
  Workspace workspace;
  Cut cut;  // rows of a thread's block, columns and depth of a b panel
};

// What of the workspace its cut takes; pointers are ignored.
int64_t workspace_bytes(const MixedProduct& op);
// Throws Error if there is less workspace.
void mixed_product(const MixedProduct& op);

}  // namespace snug::kernels
