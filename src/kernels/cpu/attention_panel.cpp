#include "kernels/cpu/attention_panel.h"

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/bf16_tiles.h"
#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/storage.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/attention_mask.h"
#include "kernels/cpu/attention_moves.h"
#include "kernels/cpu/attention_softmax.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

using PanelVisible = Visible<kTile>;

int32_t starts(const int32_t* document_start, int64_t first_query, int64_t window, int64_t rows, int64_t padded_rows,
               int32_t* start) {
  return read_starts(document_start, first_query, window, rows, padded_rows, start);
}

int64_t seen(const PanelKeys& panel, int64_t cols) {
  return PanelVisible(panel.start, panel.first_query, panel.first_key).keys(cols);
}

void load(const Attention& op, int64_t rows, int64_t at, const float* lse, float* highest, float* total, float* out) {
  std::fill_n(out, kTile * op.head_size, 0.0F);
  std::fill_n(highest, kTile, -1e30F);
  std::fill_n(total, kTile, op.sums == nullptr ? 0.0F : 1.0F);
  if (op.sums == nullptr) return;
  std::copy_n(lse, rows, highest);
  transpose(op.sums + at, op.heads * op.head_size, rows, op.head_size, out, kTile);
}

void fold(const Attention& op, const PanelKeys& panel, int64_t keys, float* scores, float* highest, float* total,
          float* out) {
  const PanelVisible visible(panel.start, panel.first_query, panel.first_key);
  if (op.softcap > 0) cap_scores<kTile>(scores, kTile, keys, op.scale, op.softcap);
  const float scale = op.softcap > 0 ? 1.0F : op.scale;
  if (visible.all(keys)) {
    fold_softmax<false>(visible, keys, scale, scores, highest, total, out, op.head_size);
  } else {
    fold_softmax<true>(visible, keys, scale, scores, highest, total, out, op.head_size);
  }
}

void store(const Attention& op, const float* total, float* sums, float* turned, int64_t rows, int64_t at, int64_t step) {
  divide_panel<kTile>(total, op.head_size, sums);
  transpose(sums, kTile, op.head_size, kTile, turned, op.head_size);
  narrow(turned, rows, op.head_size, op.out, at, step);
}

void deltas(const AttentionBackward& op, int64_t at, int64_t step, int64_t rows, float* delta) {
  with_type(op.out,
            [&](auto* out) HWY_ATTR { row_products(op.d_out + at, step, out + at, step, rows, op.head_size, delta); });
}

void differentiate(const AttentionBackward& op, const PanelKeys& panel, int64_t keys, float* scores, float* d_scores,
                   const float* lse, const float* delta) {
  const PanelVisible visible(panel.start, panel.first_query, panel.first_key);
  if (op.softcap > 0) cap_scores<kTile>(scores, kTile, keys, op.scale, op.softcap);
  const ScoreFactors factors{.scale = op.softcap > 0 ? 1.0F : op.scale,
                             .d_scale = op.scale,
                             .inverse_cap = op.softcap > 0 ? 1.0F / op.softcap : 0.0F};
  if (visible.all(keys)) {
    softmax_gradient<false>(visible, keys, factors, scores, d_scores, kTile, lse, delta);
  } else {
    softmax_gradient<true>(visible, keys, factors, scores, d_scores, kTile, lse, delta);
  }
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(starts);
HWY_EXPORT(seen);
HWY_EXPORT(load);
HWY_EXPORT(fold);
HWY_EXPORT(store);
HWY_EXPORT(deltas);
HWY_EXPORT(differentiate);

int32_t first_visible_keys(const int32_t* document_start, int64_t first_query, int64_t window, int64_t rows,
                           int64_t padded_rows, int32_t* start) {
  return HWY_DYNAMIC_DISPATCH(starts)(document_start, first_query, window, rows, padded_rows, start);
}

int64_t seen_keys(const PanelKeys& panel, int64_t cols) { return HWY_DYNAMIC_DISPATCH(seen)(panel, cols); }

void load_panel(const Attention& op, int64_t rows, int64_t at, const float* lse, float* highest, float* total, float* out) {
  HWY_DYNAMIC_DISPATCH(load)(op, rows, at, lse, highest, total, out);
}

void fold_panel(const Attention& op, const PanelKeys& panel, int64_t seen, float* scores, float* highest, float* total,
                float* out) {
  HWY_DYNAMIC_DISPATCH(fold)(op, panel, seen, scores, highest, total, out);
}

void store_panel(const Attention& op, const float* total, float* sums, float* turned, int64_t rows, int64_t at,
                 int64_t step) {
  HWY_DYNAMIC_DISPATCH(store)(op, total, sums, turned, rows, at, step);
}

void panel_deltas(const AttentionBackward& op, int64_t at, int64_t step, int64_t rows, float* delta) {
  HWY_DYNAMIC_DISPATCH(deltas)(op, at, step, rows, delta);
}

void differentiate_panel(const AttentionBackward& op, const PanelKeys& panel, int64_t seen, float* scores, float* d_scores,
                         const float* lse, const float* delta) {
  HWY_DYNAMIC_DISPATCH(differentiate)(op, panel, seen, scores, d_scores, lse, delta);
}

}  // namespace snug::kernels
#endif  // HWY_ONCE
