#pragma once
// PyTorch's fused attention kernels on sizes (ATen/native/transformers/cuda): what forward and backward allocate and keep.
// Knows no model.

#include "eager/torch_ops.h"

namespace snug::eager {

// Of one call: B sequences of T tokens, H heads of queries, D numbers each.
struct AttentionShape {
  int64_t batch = 1, tokens = 0, heads = 0, head_size = 0;  // B, T, H, D
  // Flash: a row's keys are shared among blocks of threads where there are few rows; not where shares are dropped.
  bool shares_keys = false;
  // Flash: queries lie head by head, the output then too, unlike its gradient.
  bool head_by_head = false;
  // Flash: the state of random numbers is made.
  bool random_state = false;
};

// _scaled_dot_product_flash_attention
Tensor flash_attention(Torch& torch, const Tensor& query, const Tensor& key, const Tensor& value,
                       const AttentionShape& shape);

// _scaled_dot_product_efficient_attention; an undefined mask is none.
Tensor efficient_attention(Torch& torch, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                           const AttentionShape& shape);

}  // namespace snug::eager
