// Attention backward (Dao et al., FlashAttention, 2022, algorithm 4), transposed like the forward pass: scores are computed
// again from q, k and lse, one block of queries by one block of keys at a time.
//
// How work is split: a unit is one (sequence, key/value head), with all query heads of its group. A team of threads works on
// a unit, and threads / team units go on at once; each member owns every team-th block of keys, hence its rows of d_k and
// d_v, which it sums over heads and queries in one order. After a round of query blocks the team meets and adds the members'
// shares of d_q in the order of members. Team and round follow from the shape and cut.threads, so the same cut gives the
// same bits.

#include <algorithm>
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

// A block of queries of one head, and where in the workspace its parts stand.
struct QueryBlock {
  QueryBlock(const AttentionBackward& op, int64_t round, float* workspace, const QueriesAt& at)
      : parts(op.cut.rows, op.cut.cols, op.head_size, round),
        b(at.b),
        h(at.h),
        kv(at.h / (op.heads / op.kv_heads)),
        first_query(at.first),
        position(op.first_query + at.first),
        rows(std::min(op.cut.rows, op.seq_len - at.first)),
        padded_rows(padded_to(rows, kTileCols)),
        queries(workspace + parts.queries),
        d_out(workspace + parts.d_out),
        query_rows(workspace + parts.query_rows),
        d_out_rows(workspace + parts.d_out_rows),
        keys(workspace + parts.keys),
        values(workspace + parts.values),
        scores(workspace + parts.scores),
        d_scores(workspace + parts.d_scores),
        lse(workspace + parts.lse),
        delta(workspace + parts.delta),
        start(reinterpret_cast<int32_t*>(workspace + parts.start)) {}

  BackwardParts parts;
  int64_t b, h, kv, first_query, position, rows, padded_rows;  // position: of the first query, among keys
  float *queries, *d_out, *query_rows, *d_out_rows, *keys, *values, *scores, *d_scores, *lse, *delta;
  int32_t* start;
};

// Fills in what does not depend on the keys; the first key that a query sees.
int32_t load_queries(const AttentionBackward& op, const QueryBlock& block) {
  const int64_t head_size = op.head_size, head = block.parts.head;
  const int64_t rows = block.rows, padding = block.padded_rows - rows;
  const int64_t step = op.heads * head_size;
  const int64_t at = ((block.b * op.seq_len + block.first_query) * op.heads + block.h) * head_size;
  widen(op.q, at, step, rows, head_size, op.scale, block.query_rows, head);
  widen(In{op.d_out, DType::f32}, at, step, rows, head_size, 1.0F, block.d_out_rows, head);
  std::fill_n(block.query_rows + rows * head, padding * head, 0.0F);
  std::fill_n(block.d_out_rows + rows * head, padding * head, 0.0F);
  for (int64_t p = 0; p < block.padded_rows; p += kTileCols) {
    transpose(block.query_rows + p * head, head, kTileCols, head_size, block.queries + p * head_size, kTileCols);
    transpose(block.d_out_rows + p * head, head, kTileCols, head_size, block.d_out + p * head_size, kTileCols);
  }
  with_type(op.out,
            [&](auto* out) HWY_ATTR { row_products(block.d_out_rows, head, out + at, step, rows, head_size, block.delta); });
  std::fill_n(block.delta + rows, padding, 0.0F);
  std::copy_n(op.lse + (block.b * op.heads + block.h) * op.seq_len + block.first_query, rows, block.lse);
  std::fill_n(block.lse + rows, padding, 0.0F);
  return read_starts(op.document_start + block.b * op.seq_len + block.first_query, block.position, op.window, rows,
                     block.padded_rows, block.start);
}

// Scores and their gradients of the panel of queries at `p` against the block's `cols` keys, of which it sees `seen`; its
// share of d_q is added to.
HWY_INLINE void score_gradients(const AttentionBackward& op, const QueryBlock& block, int64_t p, int64_t cols,
                                const Visible<kTileCols>& visible, int64_t seen, float* d_queries) {
  const int64_t head_size = op.head_size, step = block.parts.rows;
  const TileC to_scores = {block.scores + p, step}, to_d_scores = {block.d_scores + p, step};
  const TileB from_queries = {block.queries + p * head_size, kTileCols},
              from_d_out = {block.d_out + p * head_size, kTileCols};
  product({block.keys, head_size, 1}, from_queries, to_scores, seen, kTileCols, head_size, false);
  product({block.values, head_size, 1}, from_d_out, to_d_scores, seen, kTileCols, head_size, false);
  if (op.softcap > 0) cap_scores<kTileCols>(to_scores.data, step, seen, 1.0F, op.softcap);
  const ScoreFactors factors{.scale = 1.0F, .d_scale = 1.0F, .inverse_cap = op.softcap > 0 ? 1.0F / op.softcap : 0.0F};
  if (visible.all(seen)) {
    softmax_gradient<false>(visible, seen, factors, to_scores.data, to_d_scores.data, step, block.lse + p, block.delta + p);
  } else {
    softmax_gradient<true>(visible, seen, factors, to_scores.data, to_d_scores.data, step, block.lse + p, block.delta + p);
  }
  for (int64_t hidden = seen; hidden < cols; ++hidden) {
    std::fill_n(to_scores.data + hidden * step, kTileCols, 0.0F);
    std::fill_n(to_d_scores.data + hidden * step, kTileCols, 0.0F);
  }
  product({block.keys, 1, head_size}, {to_d_scores.data, step}, {d_queries + p * head_size, kTileCols}, head_size, kTileCols,
          seen, true);
}

// One block of queries of one head against the key blocks of one member of the team. Adds to d_k and d_v; leaves the
// member's share of d_q, transposed, in d_queries.
void attention_backward_block(const AttentionBackward& op, int64_t round, float* workspace, float* d_queries,
                              const QueriesAt& at, const TeamMember& member) {
  const QueryBlock block(op, round, workspace, at);
  const int64_t head_size = op.head_size, head = block.parts.head, step = block.parts.rows;
  const int32_t first_key = load_queries(op, block);
  std::fill_n(d_queries, block.padded_rows * head_size, 0.0F);

  const int64_t kv_step = op.kv_heads * head_size;
  const KeyRange range(op, first_key, block.position + block.rows);
  for (int64_t key = range.begin; key < range.end; key += op.cut.cols) {
    if ((key - op.first_key) / op.cut.cols % member.team != member.index) continue;
    const int64_t cols = std::min(op.cut.cols, range.end - key);
    const int64_t kv_at = ((at.b * op.keys + key - op.first_key) * op.kv_heads + block.kv) * head_size;
    widen(op.k, kv_at, kv_step, cols, head_size, 1.0F, block.keys, head_size);
    widen(op.v, kv_at, kv_step, cols, head_size, 1.0F, block.values, head_size);
    int64_t first = block.padded_rows, last = 0;  // panels that see any of these keys
    for (int64_t p = 0; p < block.padded_rows; p += kTileCols) {
      const Visible<kTileCols> visible(block.start + p, block.position + p, key);
      const int64_t seen = visible.keys(cols);
      if (seen == 0 && first == block.padded_rows) continue;
      first = std::min(first, p);
      if (seen > 0) last = p + kTileCols;
      score_gradients(op, block, p, cols, visible, seen, d_queries);
    }
    if (first >= last) continue;
    const int64_t depth = last - first;
    const TileB from_d_out = {block.d_out_rows + first * head, head}, from_queries = {block.query_rows + first * head, head};
    product({block.scores + first, step, 1}, from_d_out, {op.d_v + kv_at, kv_step}, cols, head_size, depth, true);
    product({block.d_scores + first, step, 1}, from_queries, {op.d_k + kv_at, kv_step}, cols, head_size, depth, true);
  }
}

// to[j, i] += from[i, j].
HWY_INLINE void add_transposed(const float* from, int64_t from_step, int64_t rows, int64_t cols, float* to,
                               int64_t to_step) {
  for (int64_t j = 0; j < cols; ++j)
    for (int64_t i = 0; i < rows; ++i) to[j * to_step + i] += from[i * from_step + j];
}

// Adds the team's shares of d_q for [first, last) of the head, times `scale`, and writes or adds them in rows. `d_queries`
// is the first member's, the others' lie `apart` floats apart.
template <int64_t PANEL>
HWY_INLINE void add_queries(const AttentionBackward& op, int64_t apart, float* d_queries, int64_t team, const QueriesAt& at,
                            int64_t first, int64_t last, float scale) {
  using Lanes = HighwayLanes;
  const int64_t rows = std::min(op.cut.rows, op.seq_len - at.first);
  for (int64_t p = 0; p < rows; p += PANEL) {
    float* const panel = d_queries + p * op.head_size;
    for (int64_t i = first * PANEL; i < last * PANEL; i += Lanes::kWidth) {
      auto sum = Lanes::whole(panel + i);
      for (int64_t member = 1; member < team; ++member) sum = Lanes::add(sum, Lanes::whole(panel + member * apart + i));
      Lanes::store_whole(Lanes::mul(sum, Lanes::set(scale)), panel + i);
    }
    float* const to = op.d_q + ((at.b * op.seq_len + at.first + p) * op.heads + at.h) * op.head_size + first;
    const int64_t to_step = op.heads * op.head_size, count = std::min(PANEL, rows - p);
    if (op.accumulate) {
      add_transposed(panel + first * PANEL, PANEL, last - first, count, to, to_step);
    } else {
      transpose(panel + first * PANEL, PANEL, last - first, count, to, to_step);
    }
  }
}

void attention_backward_queries(const AttentionBackward& op, int64_t apart, float* d_queries, int64_t team,
                                const QueriesAt& at, int64_t first, int64_t last) {
  if (in_bf16(op.cut.arithmetic))  // where the scale is in the gradients of scores
    return add_queries<kQueryPadding>(op, apart, d_queries, team, at, first, last, 1.0F);
  add_queries<kTileCols>(op, apart, d_queries, team, at, first, last, op.scale);
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(attention_backward_block);
HWY_EXPORT(attention_backward_queries);

namespace {

// A thread's part of the workspace, as far as its team knows it; in floats.
struct MemberParts {
  int64_t round, rows, d_queries, floats;

  template <class Parts>
  MemberParts(const Parts& parts, int64_t blocks)
      : round(blocks), rows(parts.rows), d_queries(parts.d_queries), floats(parts.floats) {}
};

MemberParts parts_of(const AttentionBackward& op, int64_t team) {
  const int64_t round = backward_round(op.cut.rows, op.seq_len, team);
  if (in_bf16(op.cut.arithmetic)) return {BackwardPartsInBf16(op.cut.rows, op.cut.cols, op.head_size, round), round};
  return {BackwardParts(op.cut.rows, op.cut.cols, op.head_size, round), round};
}

void block_against_keys(const AttentionBackward& op, const MemberParts& parts, float* own, float* d_queries,
                        const QueriesAt& at, const TeamMember& member) {
  if (in_bf16(op.cut.arithmetic)) return attention_backward_block_in_bf16(op, parts.round, own, d_queries, at, member);
  HWY_DYNAMIC_DISPATCH(attention_backward_block)(op, parts.round, own, d_queries, at, member);
}

// Before they are summed into.
void clear_keys(const AttentionBackward& op, int64_t b, int64_t kv) {
  if (op.accumulate) return;
  for (int64_t t = 0; t < op.keys; ++t) {
    const int64_t at = ((b * op.keys + t) * op.kv_heads + kv) * op.head_size;
    std::fill_n(op.d_k + at, op.head_size, 0.0F);
    std::fill_n(op.d_v + at, op.head_size, 0.0F);
  }
}

// One thread does a whole unit.
void backward_alone(const AttentionBackward& op, const MemberParts& parts, float* workspace) {
  const int64_t group = op.heads / op.kv_heads;
  for_units(op.cut.threads, op.batch * op.kv_heads, [&](int32_t worker, int64_t unit) {
    const int64_t b = unit / op.kv_heads, kv = unit % op.kv_heads;
    float* const own = workspace + worker * parts.floats;
    float* const d_queries = own + parts.d_queries;
    clear_keys(op, b, kv);
    for (int64_t h = kv * group; h < (kv + 1) * group; ++h) {
      for (int64_t query = 0; query < op.seq_len; query += op.cut.rows) {
        block_against_keys(op, parts, own, d_queries, {b, h, query}, {0, 1});
        HWY_DYNAMIC_DISPATCH(attention_backward_queries)(op, parts.floats, d_queries, 1, {b, h, query}, 0, op.head_size);
      }
    }
  });
}

// One round of one head for every team: the members' key blocks, then the sums of d_q, each member a slice of the head.
void team_round(const AttentionBackward& op, const MemberParts& parts, float* workspace, int64_t team, int64_t first_unit,
                int64_t g, int64_t first_query, int64_t last_query) {
  const int64_t group = op.heads / op.kv_heads;
  const auto each = [&](const auto& work) {
    for_parts(op.cut.threads, op.cut.threads, 1, [&](int32_t thread, int64_t, int64_t) {
      const int64_t unit = first_unit + thread / team;
      const int64_t h = unit % op.kv_heads * group + g;
      for (int64_t query = first_query; query < last_query; query += op.cut.rows) {
        const int64_t at = parts.d_queries + (query - first_query) / op.cut.rows * parts.rows * op.head_size;
        work(thread, at, QueriesAt{unit / op.kv_heads, h, query});
      }
    });
  };
  each([&](int64_t thread, int64_t at, const QueriesAt& queries) {
    float* const own = workspace + thread * parts.floats;
    block_against_keys(op, parts, own, own + at, queries, {thread % team, team});
  });
  each([&](int64_t thread, int64_t at, const QueriesAt& queries) {
    const int64_t member = thread % team;
    float* const first = workspace + (thread - member) * parts.floats + at;
    HWY_DYNAMIC_DISPATCH(attention_backward_queries)
    (op, parts.floats, first, team, queries, op.head_size * member / team, op.head_size * (member + 1) / team);
  });
}

void backward_in_teams(const AttentionBackward& op, const MemberParts& parts, float* workspace, int64_t team) {
  const int64_t units = op.batch * op.kv_heads, group = op.heads / op.kv_heads;
  for_parts(op.cut.threads, units, 1, [&](int32_t, int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) clear_keys(op, unit / op.kv_heads, unit % op.kv_heads);
  });
  const int64_t step = parts.round * op.cut.rows;
  for (int64_t unit = 0; unit < units; unit += op.cut.threads / team)
    for (int64_t g = 0; g < group; ++g)
      for (int64_t query = 0; query < op.seq_len; query += step)
        team_round(op, parts, workspace, team, unit, g, query, std::min(op.seq_len, query + step));
}

}  // namespace

void attention_backward(const AttentionBackward& op) {
  const int64_t team = backward_team(op.batch * op.kv_heads, op.cut.threads);
  const MemberParts parts = parts_of(op, team);
  require_storage({op.q.dtype, op.k.dtype, op.v.dtype, op.out.dtype});
  require_workspace(op.workspace, op.cut.threads * parts.floats * static_cast<int64_t>(sizeof(float)), "attention_backward");
  if (op.accumulate && !sees_keys(op)) return;
  auto* const workspace = static_cast<float*>(op.workspace.data);
  if (team == 1) {
    backward_alone(op, parts, workspace);
  } else {
    backward_in_teams(op, parts, workspace, team);
  }
}

const Kernel cpu::attention_backward = cpu::plain<AttentionBackward, kernels::attention_backward>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
