#pragma once
// Blocks of attention whose products are computed in bf16 tiles (bf16_tiles.h) and whose softmax in fp32: shares of keys and
// gradients of scores are rounded to bf16 before they are multiplied (as in FlashAttention). q, k, v are bf16, head_size is
// a multiple of 32.

#include <cstdint>

#include "kernels/cpu/attention_parts.h"
#include "kernels/ops/attention.h"

namespace snug::kernels {

// One block of queries of one head; `workspace` is the thread's, as ForwardPartsInBf16 carves it.
void attention_block_in_bf16(const Attention& op, float* workspace, int64_t b, int64_t h, int64_t first_query);

// As attention_backward_block (attention_backward.cpp), but d_queries are times op.scale already; `workspace` is the
// thread's, as BackwardPartsInBf16 carves it.
void attention_backward_block_in_bf16(const AttentionBackward& op, int64_t round, float* workspace, float* d_queries,
                                      const QueriesAt& at, const TeamMember& member);

}  // namespace snug::kernels
