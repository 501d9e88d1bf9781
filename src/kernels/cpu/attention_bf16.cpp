#include "kernels/cpu/attention_bf16.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/attention_panel.h"
#include "kernels/cpu/attention_parts.h"
#include "kernels/cpu/bf16_tiles.h"
#include "kernels/cpu/pieces.h"
#include "kernels/cpu/tiles.h"

namespace snug::kernels {

void attention_block_in_bf16(const Attention& op, float* workspace, int64_t b, int64_t h, int64_t first_query) {
  const TileRegisters registers;
  const int64_t head_size = op.head_size;
  const int64_t kv = h / (op.heads / op.kv_heads);
  const ForwardPartsInBf16 parts(op.cut.rows, op.cut.cols, head_size);
  auto* const queries = reinterpret_cast<uint16_t*>(workspace + parts.queries);
  auto* const keys = reinterpret_cast<uint16_t*>(workspace + parts.keys);
  auto* const values = reinterpret_cast<uint16_t*>(workspace + parts.values);
  auto* const shares = reinterpret_cast<uint16_t*>(workspace + parts.shares);
  float* const out = workspace + parts.out;
  float* const scores = workspace + parts.scores;
  float* const highest = workspace + parts.highest;
  float* const total = workspace + parts.total;
  auto* const start = reinterpret_cast<int32_t*>(workspace + parts.start);
  const int64_t rows = std::min(op.cut.rows, op.seq_len - first_query);
  const int64_t position = op.first_query + first_query;
  const int64_t padded_rows = padded_to(rows, kTile);
  const int64_t q_step = op.heads * head_size, kv_step = op.kv_heads * head_size;
  const int64_t q_at = ((b * op.seq_len + first_query) * op.heads + h) * head_size;
  const MatrixView turned_queries{at(op.q, q_at), q_step, true, head_size, rows};
  for (int64_t p = 0; p < padded_rows; p += kTile)
    pack_pairs(turned_queries.part(0, p, head_size, std::min(kTile, rows - p)), queries + p * head_size, 0);
  float* const lse = op.lse + (b * op.heads + h) * op.seq_len + first_query;
  for (int64_t p = 0; p < padded_rows; p += kTile)
    load_panel(op, std::min(kTile, rows - p), q_at + p * q_step, lse + p, highest + p, total + p, out + p * head_size);
  const int32_t first_key =
      first_visible_keys(op.document_start + b * op.seq_len + first_query, position, op.window, rows, padded_rows, start);

  const KeyRange range(op, first_key, position + rows);
  for (int64_t key = range.begin; key < range.end; key += op.cut.cols) {
    const int64_t cols = std::min(op.cut.cols, range.end - key);
    const int64_t padded_cols = padded_to(cols, kTile);
    const int64_t kv_at = ((b * op.keys + key - op.first_key) * op.kv_heads + kv) * head_size;
    const MatrixView key_rows{at(op.k, kv_at), kv_step, false, cols, head_size};
    const MatrixView turned_values{at(op.v, kv_at), kv_step, true, head_size, cols};
    for (int64_t r = 0; r < cols; r += kTile)
      split_rows(key_rows.part(r, 0, std::min(kTile, cols - r), head_size), keys + r * head_size, 0);
    for (int64_t d = 0; d < head_size; d += kTile)
      split_rows(turned_values.part(d, 0, kTile, cols), values + d * padded_cols, 0);
    for (int64_t p = 0; p < padded_rows; p += kTile) {
      const PanelKeys panel_keys{start + p, position + p, key};
      const int64_t seen = seen_keys(panel_keys, cols);
      if (seen == 0) continue;
      const int64_t padded_seen = padded_to(seen, kTile);
      float* const panel = out + p * head_size;
      const TileFactors to_scores{.a_stride = head_size, .b = queries + p * head_size, .k = head_size};
      multiply_rows(to_scores, keys, padded_seen, scores, kTile, false);
      fold_panel(op, panel_keys, seen, scores, highest + p, total + p, panel);
      std::fill_n(scores + seen * kTile, (padded_seen - seen) * kTile, 0.0F);
      pair_panel(scores, padded_seen, shares);
      const TileFactors to_out{.a_stride = padded_cols, .b = shares, .k = padded_seen};
      multiply_rows(to_out, values, head_size, panel, kTile, true);
    }
  }

  for (int64_t p = 0; p < padded_rows; p += kTile)
    store_panel(op, total + p, out + p * head_size, workspace + parts.turned, std::min(kTile, rows - p), q_at + p * q_step,
                q_step);
  for (int64_t q = 0; q < rows; ++q) lse[q] = highest[q] + std::log(total[q]);
}

}  // namespace snug::kernels
