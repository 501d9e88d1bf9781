// How attention is cut, and what its kernels carve for each thread: blocks of queries and keys that stay in a core's L2
// cache, each piece on cache lines of its own. Queries are padded to 32 (two AVX-512 vectors), heads to 16 (one) where
// vectors run along them.

#include "targets/cpu/attention.h"

#include <algorithm>
#include <initializer_list>
#include <numeric>

#include "base/checked.h"
#include "base/dtype.h"
#include "targets/cpu/sizing.h"

namespace snug {

namespace {

constexpr int64_t kQueryPadding = 32, kHeadPadding = 16, kCacheLine = 64;

int64_t bytes_of(std::initializer_list<int64_t> pieces, int32_t threads) {
  int64_t bytes = 0;
  for (int64_t floats : pieces) bytes += align_up(floats * size_of(DType::f32), kCacheLine);
  return checked_mul(bytes, threads);
}

// Threads that share one (sequence, key/value head): one where there are many; otherwise teams that divide threads and
// units.
int64_t team_of(int64_t units, int32_t threads) {
  return units >= 8 * threads ? 1 : threads / std::gcd(units, int64_t{threads});
}

// Query blocks whose gradient a team's members keep apart before they add them up.
int64_t round_of(int64_t rows, int64_t seq_len, int64_t team) {
  constexpr int64_t kRoundQueries = 1024;
  return team == 1 ? 1 : std::min((seq_len + rows - 1) / rows, std::max<int64_t>(kRoundQueries / rows, 1));
}

}  // namespace

Blocks attention_blocks(int64_t seq_len, int64_t head_size) {
  return {.rows = std::min<int64_t>(head_size <= 128 ? 128 : 64, align_up(seq_len, kQueryPadding)),
          .cols = std::min<int64_t>(64, seq_len)};
}

int64_t attention_workspace_bytes(const AttentionShape& shape, int32_t threads) {
  const auto [rows, cols, depth] = attention_blocks(shape.seq_len, shape.head_size);
  const int64_t queries = rows * shape.head_size;
  if (in_bf16(shape.arithmetic)) {
    const int64_t padded = align_up(cols, kQueryPadding), keys = padded * shape.head_size;
    return bytes_of({queries / 2, queries,                                // queries, out
                     keys / 2, keys / 2,                                  // keys, values
                     padded * kQueryPadding, padded * kQueryPadding / 2,  // scores of a panel, shares
                     kQueryPadding * shape.head_size,                     // a panel of out in rows
                     rows, rows, rows},                                   // maximum, sum, first visible key
                    threads);
  }
  const int64_t keys = cols * shape.head_size;
  return bytes_of({queries, queries,      // queries and out, transposed
                   keys, keys,            // keys, values
                   cols * kQueryPadding,  // scores of a panel
                   rows, rows, rows},     // maximum, sum, first visible key
                  threads);
}

int64_t attention_backward_workspace_bytes(const AttentionShape& shape, int32_t threads) {
  const auto [rows, cols, depth] = attention_blocks(shape.seq_len, shape.head_size);
  const int64_t queries = rows * shape.head_size;
  const int64_t round = round_of(rows, shape.seq_len, team_of(shape.batch * shape.kv_heads, threads));
  if (in_bf16(shape.arithmetic)) {
    const int64_t padded = align_up(cols, kQueryPadding), keys = padded * shape.head_size;
    return bytes_of({queries / 2, queries / 2,                        // queries, d_out
                     round * queries,                                 // d_queries
                     queries / 2, queries / 2,                        // queries, d_out in pairs of them
                     keys / 2, keys / 2, keys / 2,                    // keys, values, keys transposed
                     padded * kQueryPadding, padded * kQueryPadding,  // scores, d_scores of a panel
                     padded * rows / 2, padded * rows / 2,            // shares, d_scores in rows
                     padded * kQueryPadding / 2,                      // d_scores in pairs
                     kQueryPadding * kQueryPadding,                   // a tile
                     rows, rows, rows},                               // lse, delta, first visible key
                    threads);
  }
  const int64_t keys = cols * shape.head_size;
  const int64_t padded = rows * align_up(shape.head_size, kHeadPadding);
  return bytes_of({queries, queries,          // queries and d_out, transposed
                   round * queries,           // d_queries, transposed
                   padded, padded,            // queries, d_out in rows
                   keys, keys,                // keys, values
                   cols * rows, cols * rows,  // scores, d_scores
                   rows, rows, rows},         // lse, delta, first visible key
                  threads);
}

int64_t cached_attention_workspace_bytes(const CachedAttentionShape& shape, int32_t threads) {
  if (!shape.in_blocks()) return bytes_of({shape.capacity, shape.head_size}, threads);
  const AttentionShape blocks{.batch = 1,
                              .seq_len = shape.rows,
                              .kv_heads = shape.heads,
                              .head_size = shape.head_size,
                              .arithmetic = shape.arithmetic};
  return attention_workspace_bytes(blocks, threads) + bytes_of({shape.heads * shape.rows, shape.rows}, 1);
}

namespace cpu {
namespace {

// In bf16 where the operands are and heads are whole tiles. Keys and values may lie in caches.
Arithmetic arithmetic_of(const OpView& op, const Machine& machine, Slot keys, Slot values) {
  constexpr int64_t kTile = 32;  // kernels/cpu/bf16_tiles.h
  const int64_t head_size = op[Slot::q].dim(3);
  const bool halves = op[Slot::q].dtype == DType::bf16 && op[keys].dtype == DType::bf16 && op[values].dtype == DType::bf16;
  const bool tiles = head_size % kTile == 0 && op[Slot::v].dim(3) == head_size;
  return in_bf16(machine.products) && halves && tiles ? Arithmetic::bf16 : Arithmetic::fp32;
}

// Blocks are cut for the larger of the two sizes.
AttentionShape shape_of(const OpView& op, const Machine& machine) {
  const OperandView& q = op[Slot::q];
  return {.batch = q.dim(0),
          .seq_len = q.dim(1),
          .kv_heads = op[Slot::k].dim(2),
          .head_size = std::max(q.dim(3), op[Slot::v].dim(3)),
          .arithmetic = arithmetic_of(op, machine, Slot::k, Slot::v)};
}

OpCut cut_of(int64_t seq_len, int64_t head_size, Arithmetic arithmetic, const Machine& machine) {
  const Blocks blocks = attention_blocks(seq_len, head_size);
  return {.threads = machine.threads, .rows = blocks.rows, .cols = blocks.cols, .arithmetic = arithmetic};
}

OpCut attention_cut(const OpView& op, const Machine& machine) {
  const AttentionShape shape = shape_of(op, machine);
  return cut_of(shape.seq_len, shape.head_size, shape.arithmetic, machine);
}

int64_t forward(const OpView& op, const Machine& machine) {
  return attention_workspace_bytes(shape_of(op, machine), machine.threads);
}

int64_t backward(const OpView& op, const Machine& machine) {
  return attention_backward_workspace_bytes(shape_of(op, machine), machine.threads);
}

CachedAttentionShape cached_shape_of(const OpView& op, const Machine& machine) {
  const OperandView &q = op[Slot::q], &cache = op[Slot::key_cache];
  return {.rows = q.dim(1),
          .capacity = cache.dim(0),
          .heads = q.dim(2),
          .head_size = std::max(q.dim(3), op[Slot::v].dim(3)),
          .arithmetic = arithmetic_of(op, machine, Slot::key_cache, Slot::value_cache)};
}

OpCut cached_cut(const OpView& op, const Machine& machine) {
  const CachedAttentionShape shape = cached_shape_of(op, machine);
  return shape.in_blocks() ? cut_of(shape.rows, shape.head_size, shape.arithmetic, machine) : even_cut(op, machine);
}

int64_t cached(const OpView& op, const Machine& machine) {
  return cached_attention_workspace_bytes(cached_shape_of(op, machine), machine.threads);
}

}  // namespace

const OpSizing sizing::attention = {attention_cut, forward};
const OpSizing sizing::attention_backward = {attention_cut, backward};
const OpSizing sizing::cached_attention = {cached_cut, cached};

}  // namespace cpu
}  // namespace snug
