#pragma once
// How attention is cut, and what its kernels carve for each thread.

#include "base/arithmetic.h"
#include "targets/cpu/blocks.h"

namespace snug {

// ---- attention, forward and backward: blocks (queries by keys), bytes for all threads.
Blocks attention_blocks(int64_t seq_len, int64_t head_size);
struct AttentionShape {
  int64_t batch = 0, seq_len = 0, kv_heads = 0, head_size = 0;
  Arithmetic arithmetic = Arithmetic::fp32;
};
int64_t attention_workspace_bytes(const AttentionShape& shape, int32_t threads);
int64_t attention_backward_workspace_bytes(const AttentionShape& shape, int32_t threads);

// ---- cached_attention: row by row, for each thread [scores of a head] [query]; or, of a step of many rows, in blocks as
// attention's: [what it takes] [lse of all rows] [their first keys].
struct CachedAttentionShape {
  int64_t rows = 0, capacity = 0, heads = 0, head_size = 0;
  Arithmetic arithmetic = Arithmetic::fp32;

  bool in_blocks() const { return rows >= 32; }
};
int64_t cached_attention_workspace_bytes(const CachedAttentionShape& shape, int32_t threads);

}  // namespace snug
