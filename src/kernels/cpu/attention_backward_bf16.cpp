// What attention_backward.cpp does in fp32, by panels of 32 queries.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/cpu/attention_bf16.h"
#include "kernels/cpu/attention_panel.h"
#include "kernels/cpu/attention_parts.h"
#include "kernels/cpu/bf16_tiles.h"
#include "kernels/cpu/pieces.h"
#include "kernels/cpu/tiles.h"

namespace snug::kernels {

namespace {

class Block {
 public:
  Block(const AttentionBackward& op, const BackwardPartsInBf16& parts, float* workspace, float* d_queries,
        const QueriesAt& of)
      : op_(op),
        parts_(parts),
        workspace_(workspace),
        d_queries_(d_queries),
        b_(of.b),
        kv_(of.h / (op.heads / op.kv_heads)),
        position_(op.first_query + of.first),
        head_size_(op.head_size),
        rows_(std::min(op.cut.rows, op.seq_len - of.first)),
        padded_rows_(padded_to(rows_, kTile)),
        kv_step_(op.kv_heads * op.head_size) {
    const int64_t q_step = op.heads * head_size_;
    const int64_t q_at = ((of.b * op.seq_len + of.first) * op.heads + of.h) * head_size_;
    pack({at(op.q, q_at), q_step, false, rows_, head_size_}, half(parts.queries), half(parts.query_pairs));
    pack({{op.d_out + q_at, DType::f32}, q_step, false, rows_, head_size_}, half(parts.d_out), half(parts.d_out_pairs));
    panel_deltas(op, q_at, q_step, rows_, delta());
    std::fill_n(delta() + rows_, padded_rows_ - rows_, 0.0F);
    std::copy_n(op.lse + (of.b * op.heads + of.h) * op.seq_len + of.first, rows_, lse());
    std::fill_n(lse() + rows_, padded_rows_ - rows_, 0.0F);
    std::fill_n(d_queries, padded_rows_ * head_size_, 0.0F);
    // NOLINTNEXTLINE(cppcoreguidelines-prefer-member-initializer): fills start()
    first_key_ = first_visible_keys(op.document_start + of.b * op.seq_len + of.first, position_, op.window, rows_,
                                    padded_rows_, start());
  }

  // Every team-th block of keys.
  void against_keys(const TeamMember& member) {
    const KeyRange range(op_, first_key_, position_ + rows_);
    for (int64_t key = range.begin; key < range.end; key += op_.cut.cols)
      if ((key - op_.first_key) / op_.cut.cols % member.team == member.index) against_block(key, range.end);
  }

 private:
  uint16_t* half(int64_t offset) const { return reinterpret_cast<uint16_t*>(workspace_ + offset); }
  float* lse() const { return workspace_ + parts_.lse; }
  float* delta() const { return workspace_ + parts_.delta; }
  int32_t* start() const { return reinterpret_cast<int32_t*>(workspace_ + parts_.start); }

  // Rows of queries -> panels of 32 of them, pairs along D; and panels of 32 of D, pairs along queries.
  void pack(const MatrixView& rows, uint16_t* panels, uint16_t* pairs) const {
    MatrixView turned = rows;
    std::swap(turned.rows, turned.cols);
    turned.transposed = true;
    for (int64_t p = 0; p < padded_rows_; p += kTile)
      pack_pairs(turned.part(0, p, head_size_, std::min(kTile, rows_ - p)), panels + p * head_size_, 0);
    for (int64_t d = 0; d < head_size_; d += kTile) pack_pairs(rows.part(0, d, rows_, kTile), pairs + d * padded_rows_, 0);
  }

  void against_block(int64_t key, int64_t end) const {
    const int64_t cols = std::min(op_.cut.cols, end - key);
    const int64_t padded_cols = padded_to(cols, kTile);
    const int64_t kv_at = ((b_ * op_.keys + key - op_.first_key) * op_.kv_heads + kv_) * head_size_;
    const MatrixView key_rows{at(op_.k, kv_at), kv_step_, false, cols, head_size_};
    const MatrixView value_rows{at(op_.v, kv_at), kv_step_, false, cols, head_size_};
    const MatrixView turned_keys{at(op_.k, kv_at), kv_step_, true, head_size_, cols};
    for (int64_t r = 0; r < cols; r += kTile) {
      const int64_t count = std::min(kTile, cols - r);
      split_rows(key_rows.part(r, 0, count, head_size_), half(parts_.keys) + r * head_size_, 0);
      split_rows(value_rows.part(r, 0, count, head_size_), half(parts_.values) + r * head_size_, 0);
    }
    for (int64_t d = 0; d < head_size_; d += kTile)
      split_rows(turned_keys.part(d, 0, kTile, cols), half(parts_.turned_keys) + d * padded_cols, 0);

    int64_t first = padded_rows_, last = 0;  // panels that see any of these keys
    for (int64_t p = 0; p < padded_rows_; p += kTile) {
      const PanelKeys panel{start() + p, position_ + p, key};
      const int64_t seen = seen_keys(panel, cols);
      if (seen == 0 && first == padded_rows_) continue;
      first = std::min(first, p);
      if (seen > 0) last = p + kTile;
      against_panel(panel, p, seen, padded_cols);
    }
    if (first >= last) return;
    add_to_keys(half(parts_.share_rows), half(parts_.d_out_pairs), first, last, cols, op_.d_v + kv_at);
    add_to_keys(half(parts_.d_score_rows), half(parts_.query_pairs), first, last, cols, op_.d_k + kv_at);
  }

  // Leaves the shares and the gradients of scores of panel p in rows of keys; adds to d_queries.
  void against_panel(const PanelKeys& panel, int64_t p, int64_t seen, int64_t padded_cols) const {
    float* const scores = workspace_ + parts_.scores;
    float* const d_scores = workspace_ + parts_.d_scores;
    const int64_t padded_seen = padded_to(seen, kTile);
    if (seen > 0) {
      multiply_rows({.a_stride = head_size_, .b = half(parts_.queries) + p * head_size_, .k = head_size_}, half(parts_.keys),
                    padded_seen, scores, kTile, false);
      multiply_rows({.a_stride = head_size_, .b = half(parts_.d_out) + p * head_size_, .k = head_size_}, half(parts_.values),
                    padded_seen, d_scores, kTile, false);
      differentiate_panel(op_, panel, seen, scores, d_scores, lse() + p, delta() + p);
    }
    std::fill_n(scores + seen * kTile, (padded_cols - seen) * kTile, 0.0F);
    std::fill_n(d_scores + seen * kTile, (padded_cols - seen) * kTile, 0.0F);
    round_rows(scores, kTile, padded_cols, kTile, half(parts_.share_rows) + p, parts_.rows);
    round_rows(d_scores, kTile, padded_cols, kTile, half(parts_.d_score_rows) + p, parts_.rows);
    if (seen == 0) return;
    pair_panel(d_scores, padded_seen, half(parts_.d_score_pairs));
    multiply_rows({.a_stride = padded_cols, .b = half(parts_.d_score_pairs), .k = padded_seen}, half(parts_.turned_keys),
                  head_size_, d_queries_ + p * head_size_, kTile, true);
  }

  // to[keys, D] += rows[keys, first .. last) pairs[first .. last, D], for queries `first` to `last`.
  void add_to_keys(const uint16_t* rows, const uint16_t* pairs, int64_t first, int64_t last, int64_t cols, float* to) const {
    float* const tile = workspace_ + parts_.tile;
    for (int64_t d = 0; d < head_size_; d += kTile) {
      for (int64_t r = 0; r < cols; r += kTile) {
        const TileFactors factors{.a = rows + r * parts_.rows + first,
                                  .a_stride = parts_.rows,
                                  .b = pairs + d * padded_rows_ + first * kTile,
                                  .k = last - first};
        float* const c = to + r * kv_step_ + d;
        if (r + kTile <= cols) {
          multiply_tile(factors, c, kv_step_, true);
        } else {
          multiply_tile(factors, tile, kTile, false);
          store_tile(tile, {c, DType::f32}, kv_step_, cols - r, kTile, 1.0F, true);
        }
      }
    }
  }

  const AttentionBackward& op_;
  const BackwardPartsInBf16& parts_;
  float* workspace_;
  float* d_queries_;
  int64_t b_, kv_, position_, head_size_, rows_, padded_rows_, kv_step_, first_key_ = 0;
};

}  // namespace

void attention_backward_block_in_bf16(const AttentionBackward& op, int64_t round, float* workspace, float* d_queries,
                                      const QueriesAt& at, const TeamMember& member) {
  const TileRegisters registers;
  const BackwardPartsInBf16 parts(op.cut.rows, op.cut.cols, op.head_size, round);
  Block(op, parts, workspace, d_queries, at).against_keys(member);
}

}  // namespace snug::kernels
