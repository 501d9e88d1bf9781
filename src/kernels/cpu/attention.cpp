// Attention forward: blocks of queries walk over blocks of keys with a running softmax (Dao et al., FlashAttention, 2022).
// Everything is transposed: a vector holds one number of neighbouring queries, so that maxima, sums and masks need no work
// across lanes. A block of queries is a row of panels, each with one vector pair of queries; key and value blocks are shared
// by them.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/attention_bf16.h"
#include "kernels/cpu/attention_parts.h"
#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/table.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/attention_mask.h"
#include "kernels/cpu/attention_moves.h"
#include "kernels/cpu/attention_softmax.h"
#include "kernels/cpu/attention_tile.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

// What a block of queries has made of the keys before, in panels; of none nothing.
void load_sums(const Attention& op, int64_t at, const float* lse, int64_t rows, int64_t padded_rows, float* highest,
               float* total, float* out) {
  std::fill_n(out, padded_rows * op.head_size, 0.0F);
  std::fill_n(highest, padded_rows, -1e30F);
  std::fill_n(total, padded_rows, op.sums == nullptr ? 0.0F : 1.0F);
  if (op.sums == nullptr) return;
  const int64_t step = op.heads * op.head_size;
  std::copy_n(lse, rows, highest);
  for (int64_t p = 0; p < rows; p += kTileCols)
    transpose(op.sums + at + p * step, step, std::min(kTileCols, rows - p), op.head_size, out + p * op.head_size, kTileCols);
}

// One block of queries of one head.
void attention_block(const Attention& op, float* workspace, int64_t b, int64_t h, int64_t first_query) {
  const int64_t head_size = op.head_size;
  const int64_t kv = h / (op.heads / op.kv_heads);
  const ForwardParts parts(op.cut.rows, op.cut.cols, head_size);
  float* const queries = workspace + parts.queries;
  float* const out = workspace + parts.out;
  float* const keys = workspace + parts.keys;
  float* const values = workspace + parts.values;
  float* const scores = workspace + parts.scores;
  float* const highest = workspace + parts.highest;
  float* const total = workspace + parts.total;
  auto* const start = reinterpret_cast<int32_t*>(workspace + parts.start);

  const int64_t rows = std::min(op.cut.rows, op.seq_len - first_query);
  const int64_t position = op.first_query + first_query;
  const int64_t padded_rows = padded_to(rows, kTileCols);
  const int64_t q_step = op.heads * head_size;
  const int64_t q_at = ((b * op.seq_len + first_query) * op.heads + h) * head_size;
  widen(op.q, q_at, q_step, rows, head_size, op.scale, out, head_size);  // `out` is free until the first product
  std::fill_n(out + rows * head_size, (padded_rows - rows) * head_size, 0.0F);
  for (int64_t p = 0; p < padded_rows; p += kTileCols)
    transpose(out + p * head_size, head_size, kTileCols, head_size, queries + p * head_size, kTileCols);
  float* const lse = op.lse + (b * op.heads + h) * op.seq_len + first_query;
  load_sums(op, q_at, lse, rows, padded_rows, highest, total, out);
  const int32_t first_key =
      read_starts(op.document_start + b * op.seq_len + first_query, position, op.window, rows, padded_rows, start);

  const int64_t kv_step = op.kv_heads * head_size;
  const KeyRange range(op, first_key, position + rows);
  for (int64_t key = range.begin; key < range.end; key += op.cut.cols) {
    const int64_t cols = std::min(op.cut.cols, range.end - key);
    const int64_t kv_at = ((b * op.keys + key - op.first_key) * op.kv_heads + kv) * head_size;
    widen(op.k, kv_at, kv_step, cols, head_size, 1.0F, keys, head_size);
    widen(op.v, kv_at, kv_step, cols, head_size, 1.0F, values, head_size);
    for (int64_t p = 0; p < padded_rows; p += kTileCols) {
      const Visible<kTileCols> visible(start + p, position + p, key);
      const int64_t seen = visible.keys(cols);
      if (seen == 0) continue;
      const TileC to_out = {out + p * head_size, kTileCols};
      product({keys, head_size, 1}, {queries + p * head_size, kTileCols}, {scores, kTileCols}, seen, kTileCols, head_size,
              false);
      if (op.softcap > 0) cap_scores<kTileCols>(scores, kTileCols, seen, 1.0F, op.softcap);
      if (visible.all(seen)) {
        fold_softmax<false>(visible, seen, 1.0F, scores, highest + p, total + p, to_out.data, head_size);
      } else {
        fold_softmax<true>(visible, seen, 1.0F, scores, highest + p, total + p, to_out.data, head_size);
      }
      product({values, 1, head_size}, {scores, kTileCols}, to_out, head_size, kTileCols, seen, true);
    }
  }

  for (int64_t p = 0; p < padded_rows; p += kTileCols) {
    float* panel = out + p * head_size;
    divide_panel<kTileCols>(total + p, head_size, panel);
    transpose(panel, kTileCols, head_size, kTileCols, queries + p * head_size, head_size);
  }
  narrow(queries, rows, head_size, op.out, q_at, q_step);
  for (int64_t q = 0; q < rows; ++q) lse[q] = highest[q] + std::log(total[q]);
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(attention_block);

void attention(const Attention& op) {
  const bool bf16 = in_bf16(op.cut.arithmetic);
  const int64_t part = bf16 ? ForwardPartsInBf16(op.cut.rows, op.cut.cols, op.head_size).floats
                            : ForwardParts(op.cut.rows, op.cut.cols, op.head_size).floats;
  require_storage({op.q.dtype, op.k.dtype, op.v.dtype, op.out.dtype});
  require_workspace(op.workspace, op.cut.threads * part * static_cast<int64_t>(sizeof(float)), "attention");
  if (op.sums != nullptr && op.sums == op.out.data && !sees_keys(op)) return;
  auto* const workspace = static_cast<float*>(op.workspace.data);
  const int64_t blocks = (op.seq_len + op.cut.rows - 1) / op.cut.rows;
  // Later blocks see more keys: they come first, so that the last units are short.
  for_units(op.cut.threads, op.batch * op.heads * blocks, [&](int32_t worker, int64_t unit) {
    const int64_t block = blocks - 1 - unit % blocks;
    const int64_t b = unit / blocks / op.heads;
    const int64_t h = unit / blocks % op.heads;
    float* const own = workspace + worker * part;
    if (bf16) return attention_block_in_bf16(op, own, b, h, block * op.cut.rows);
    HWY_DYNAMIC_DISPATCH(attention_block)(op, own, b, h, block * op.cut.rows);
  });
}

const Kernel cpu::attention = cpu::plain<Attention, kernels::attention>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
