#pragma once
// Workspace that an op may use on a GPU: dictated, as on the CPU, so that the plan is the allocation there too. Products get
// what cuBLASLt is given as its limit; quantized weights are dequantized in panels; the loss holds logits of a chunk of
// rows; attention's backward sums queries' gradients in fp32 (Dao, FlashAttention-2, 2023).

#include <cstdint>

#include "op/view.h"

namespace snug::cuda {

int64_t workspace_bytes(const OpView& op);

}  // namespace snug::cuda
