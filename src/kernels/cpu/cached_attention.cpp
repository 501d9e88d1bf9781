// Attention of new tokens over a cache. Of few: for each (head, row) the scores of all visible keys, their softmax, the
// weighted sum of values; a unit belongs to one thread and walks the cache in order, so sums have one order whatever the
// threads; the rows of a head come one after another, while its keys are in the caches. Of many (a prompt): attention in
// blocks, whose keys are those of the cache.

#include <algorithm>
#include <cstdint>

#include "base/checked.h"
#include "kernels/cpu/attention_parts.h"
#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/table.h"
#include "kernels/cpu/tiles.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

#include "kernels/rows/add.h"

using Lanes = HighwayLanes;
constexpr int64_t kWidth = Lanes::kWidth;

void store_rows(const CachedAttention& op, int64_t begin, int64_t end) {
  const int64_t cols = op.kv_heads * op.head_size;
  const auto store = [&](const In& from, const Out& cache) HWY_ATTR {
    with_types(from, cache, [&](auto* rows, auto* to) HWY_ATTR {
      for (int64_t i = begin; i < end; ++i) copy_row(Lanes(), rows + i * cols, to + op.positions[i] * cols, cols);
    });
  };
  store(op.k, op.key_cache);
  store(op.v, op.value_cache);
}

// scores[j] = query . keys[j], for KEYS keys that lie `step` numbers apart.
template <int KEYS, class T>
HWY_INLINE void score_block(const float* query, const T* keys, int64_t step, int64_t head_size, float* scores) {
  Lanes::Vec sums[KEYS];
  SNUG_UNROLL for (int j = 0; j < KEYS; ++j) sums[j] = Lanes::set(0.0F);
  int64_t d = 0;
  for (; d + kWidth <= head_size; d += kWidth) {
    const auto q = Lanes::whole(query + d);
    SNUG_UNROLL for (int j = 0; j < KEYS; ++j) sums[j] = Lanes::fma(q, Lanes::whole(keys + j * step + d), sums[j]);
  }
  if (d < head_size) {
    const auto q = Lanes::load(query, d, head_size);
    SNUG_UNROLL for (int j = 0; j < KEYS; ++j) sums[j] = Lanes::fma(q, Lanes::load(keys + j * step, d, head_size), sums[j]);
  }
  SNUG_UNROLL for (int j = 0; j < KEYS; ++j) scores[j] = Lanes::sum(sums[j]);
}

// Caps the scores [count, padded to vectors], leaves exp(score - maximum) in their place and returns their sum.
HWY_INLINE float soften(float* scores, int64_t count, float cap) {
  const int64_t padded = (count + kWidth - 1) / kWidth * kWidth;
  if (cap > 0) {
    const auto inverse = Lanes::set(1.0F / cap);
    for (int64_t i = 0; i < count; i += kWidth)
      Lanes::store(Lanes::mul(Lanes::set(cap), Lanes::tanh(Lanes::mul(Lanes::load(scores, i, count), inverse))), scores, i,
                   count);
  }
  std::fill(scores + count, scores + padded, -1e30F);
  auto highest = Lanes::whole(scores);
  for (int64_t i = kWidth; i < padded; i += kWidth) highest = Lanes::max(highest, Lanes::whole(scores + i));
  const auto top = Lanes::set(Lanes::highest(highest));
  auto total = Lanes::set(0.0F);
  for (int64_t i = 0; i < padded; i += kWidth) {
    const auto share = Lanes::exp(Lanes::sub(Lanes::whole(scores + i), top));
    Lanes::store_whole(share, scores + i);
    total = Lanes::add(total, share);
  }
  return Lanes::sum(total);
}

// out[d ..] = factor * the sum of shares[j] * values[j, d ..], VECTORS at a time.
template <int VECTORS, bool WHOLE, class T, class Y>
HWY_INLINE void mix_block(const float* shares, const T* values, int64_t step, int64_t count, float factor, Y* out, int64_t d,
                          int64_t head_size) {
  Lanes::Vec sums[VECTORS];
  SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) sums[v] = Lanes::set(0.0F);
  for (int64_t j = 0; j < count; ++j) {
    const auto share = Lanes::set(shares[j]);
    SNUG_UNROLL for (int v = 0; v < VECTORS; ++v) {
      const T* const row = values + j * step;
      const int64_t at = d + v * kWidth;
      if constexpr (WHOLE) {
        sums[v] = Lanes::fma(share, Lanes::whole(row + at), sums[v]);
      } else {
        sums[v] = Lanes::fma(share, Lanes::load(row, at, head_size), sums[v]);
      }
    }
  }
  SNUG_UNROLL for (int v = 0; v < VECTORS; ++v)
      Lanes::store(Lanes::mul(sums[v], Lanes::set(factor)), out, d + v * kWidth, head_size);
}

template <class T, class Y>
HWY_INLINE void mix(const float* shares, const T* values, int64_t step, int64_t count, float factor, Y* out,
                    int64_t head_size) {
  int64_t d = 0;
  for (; d + 8 * kWidth <= head_size; d += 8 * kWidth)
    mix_block<8, true>(shares, values, step, count, factor, out, d, head_size);
  for (; d + 4 * kWidth <= head_size; d += 4 * kWidth)
    mix_block<4, true>(shares, values, step, count, factor, out, d, head_size);
  for (; d < head_size; d += kWidth) mix_block<1, false>(shares, values, step, count, factor, out, d, head_size);
}

// One query: row `row` of head `head`. `scores` and `query` are this thread's.
void attend_cached(const CachedAttention& op, int64_t row, int64_t head, float* scores, float* query) {
  const int64_t size = op.head_size, step = op.kv_heads * size;
  const int64_t last = op.positions[row];
  const int64_t first = op.window > 0 ? std::max<int64_t>(0, last - op.window + 1) : 0;
  const int64_t count = last - first + 1;
  const int64_t cache_at = first * step + head / (op.heads / op.kv_heads) * size;
  const int64_t at = (row * op.heads + head) * size;
  with_type(op.q, [&](auto* q) HWY_ATTR { scale_row(Lanes(), q + at, op.scale, query, size); });
  with_types(In{op.key_cache.data, op.key_cache.dtype}, op.out, [&](auto* cache, auto* out) HWY_ATTR {
    const auto* const keys = cache + cache_at;
    int64_t j = 0;
    for (; j + 4 <= count; j += 4) score_block<4>(query, keys + j * step, step, size, scores + j);
    for (; j < count; ++j) score_block<1>(query, keys + j * step, step, size, scores + j);
    const float total = soften(scores, count, op.softcap);
    const auto* const values = static_cast<decltype(cache)>(op.value_cache.data) + cache_at;
    mix(scores, values, step, count, 1.0F / total, out + at, size);
  });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(store_rows);
HWY_EXPORT(attend_cached);

namespace {

constexpr int64_t kLine = 16;  // floats

void store_rows_of(const CachedAttention& op) {
  for_parts(op.rows < 32 ? 1 : op.cut.threads, op.rows, 1, [&](int32_t, int64_t begin, int64_t end) {
    if (begin < end) HWY_DYNAMIC_DISPATCH(store_rows)(op, begin, end);
  });
}

void attend_row_by_row(const CachedAttention& op) {
  const int64_t scores = align_up(op.capacity, kLine), part = scores + align_up(op.head_size, kLine);
  require_workspace(op.workspace, op.cut.threads * part * static_cast<int64_t>(sizeof(float)), "cached_attention");
  auto* const workspace = static_cast<float*>(op.workspace.data);
  for_parts(op.cut.threads, op.heads * op.rows, 1, [&](int32_t worker, int64_t begin, int64_t end) {
    float* const mine = workspace + worker * part;
    for (int64_t unit = begin; unit < end; ++unit)
      HWY_DYNAMIC_DISPATCH(attend_cached)(op, unit % op.rows, unit / op.rows, mine, mine + scores);
  });
}

// Rows at consecutive positions are a stretch of the sequence's queries.
void attend_in_blocks(const CachedAttention& op) {
  const bool bf16 = in_bf16(op.cut.arithmetic);
  const int64_t part = bf16 ? ForwardPartsInBf16(op.cut.rows, op.cut.cols, op.head_size).floats
                            : ForwardParts(op.cut.rows, op.cut.cols, op.head_size).floats;
  const int64_t lse_at = op.cut.threads * part, starts_at = lse_at + align_up(op.heads * op.rows, kLine);
  require_workspace(op.workspace, (starts_at + align_up(op.rows, kLine)) * static_cast<int64_t>(sizeof(float)),
                    "cached_attention");
  auto* const workspace = static_cast<float*>(op.workspace.data);
  auto* const starts = reinterpret_cast<int32_t*>(workspace + starts_at);
  std::fill_n(starts, op.rows, 0);
  for (int64_t begin = 0, end = 0; begin < op.rows; begin = end) {
    for (end = begin + 1; end < op.rows && op.positions[end] == op.positions[end - 1] + 1;) ++end;
    const int64_t first = begin * op.heads * op.head_size;
    attention({.q = at(op.q, first),
               .k = {op.key_cache.data, op.key_cache.dtype},
               .v = {op.value_cache.data, op.value_cache.dtype},
               .document_start = starts,
               .out = at(op.out, first),
               .lse = workspace + lse_at,
               .batch = 1,
               .seq_len = end - begin,
               .heads = op.heads,
               .kv_heads = op.kv_heads,
               .head_size = op.head_size,
               .keys = op.capacity,
               .first_query = op.positions[begin],
               .scale = op.scale,
               .softcap = op.softcap,
               .window = op.window,
               .workspace = {workspace, lse_at * static_cast<int64_t>(sizeof(float))},
               .cut = op.cut});
  }
}

}  // namespace

void cached_attention(const CachedAttention& op) {
  require_storage({op.q.dtype, op.k.dtype, op.v.dtype, op.key_cache.dtype, op.value_cache.dtype, op.out.dtype});
  if (op.key_cache.dtype != op.value_cache.dtype) throw Error("the caches of keys and values differ in dtype");
  for (int64_t i = 0; i < op.rows; ++i)
    if (op.positions[i] < 0 || op.positions[i] >= op.capacity)
      throw Error("position " + std::to_string(op.positions[i]) + " is outside of a cache of " +
                  std::to_string(op.capacity));
  store_rows_of(op);
  if (op.cut.rows > 0) return attend_in_blocks(op);
  attend_row_by_row(op);
}

const Kernel cpu::cached_attention = cpu::plain<CachedAttention, kernels::cached_attention>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
