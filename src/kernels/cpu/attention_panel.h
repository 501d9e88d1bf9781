#pragma once
// What attention in bf16 tiles does in fp32 with a panel of 32 queries, transposed: scores are [keys, 32], sums [D, 32].

#include <cstdint>

#include "kernels/ops/attention.h"

namespace snug::kernels {

// As read_starts (attention_mask.h).
int32_t first_visible_keys(const int32_t* document_start, int64_t first_query, int64_t window, int64_t rows,
                           int64_t padded_rows, int32_t* start);

// Which keys a panel sees: start[32] is the first of each query, keys are counted from `first_key`.
struct PanelKeys {
  const int32_t* start;
  int64_t first_query, first_key;
};

// How many of the block's first `cols` keys any query may see.
int64_t seen_keys(const PanelKeys& panel, int64_t cols);

// What `rows` queries, from element `at` of op.sums on, have made of the keys before -> highest, total [32] and sums `out`
// [D, 32]; of none nothing.
void load_panel(const Attention& op, int64_t rows, int64_t at, const float* lse, float* highest, float* total, float* out);

// Folds the products of queries and `seen` keys into highest [32] and total [32], leaves exp(score - highest) in their place
// and rescales the sums `out`.
void fold_panel(const Attention& op, const PanelKeys& panel, int64_t seen, float* scores, float* highest, float* total,
                float* out);

// Sums / total -> `rows` rows of op.out, from element `at` on, `step` apart. turned: [32, D], overwritten.
void store_panel(const Attention& op, const float* total, float* sums, float* turned, int64_t rows, int64_t at,
                 int64_t step);

// delta [rows] = the sum over D of d_out * out, for rows from element `at` on, `step` apart.
void panel_deltas(const AttentionBackward& op, int64_t at, int64_t step, int64_t rows, float* delta);

// Products of queries and `seen` keys -> their shares; d_scores, products of d_out and values -> gradients of the products.
void differentiate_panel(const AttentionBackward& op, const PanelKeys& panel, int64_t seen, float* scores, float* d_scores,
                         const float* lse, const float* delta);

}  // namespace snug::kernels
