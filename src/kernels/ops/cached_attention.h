#pragma once

#include "kernels/binding.h"

namespace snug::kernels {

// Attention of new tokens over a cache of all tokens so far: keys and values of row i are stored at row positions[i] of the
// caches, then query i sees their rows max(0, positions[i] - window + 1) .. positions[i] (no window: 0 .. positions[i]).
// Scale, softcap and grouped queries as above; several rows must stand at different positions. With a cut (many rows) they
// attend in its blocks, else one by one. workspace: as targets/cpu/attention.h states it.
struct CachedAttention {
  In q, k, v;                          // [M, H, D], [M, K, D], [M, K, D]
  const int32_t* positions = nullptr;  // [M], each within the capacity
  Out key_cache, value_cache;          // [capacity, K, D], of one dtype
  Out out;                             // [M, H, D]
  int64_t rows = 0, capacity = 0, heads = 0, kv_heads = 0, head_size = 0;
  float scale = 1.0F;
  float softcap = 0;   // 0: none
  int64_t window = 0;  // tokens, 0: none
  Workspace workspace;
  Cut cut;
};
// Throws Error for a position outside of the cache.

template <>
inline CachedAttention bind<CachedAttention>(const OpView& op) {
  const OperandView& q = op[Slot::q];
  return {.q = in(op, Slot::q),
          .k = in(op, Slot::k),
          .v = in(op, Slot::v),
          .positions = ints(op, Slot::positions),
          .key_cache = out(op, Slot::key_cache),
          .value_cache = out(op, Slot::value_cache),
          .out = out(op, Slot::out),
          .rows = q.dim(0) * q.dim(1),
          .capacity = op[Slot::key_cache].dim(0),
          .heads = q.dim(2),
          .kv_heads = op[Slot::k].dim(2),
          .head_size = q.dim(3),
          .scale = static_cast<float>(op.attributes.scale),
          .softcap = static_cast<float>(op.attributes.softcap),
          .window = op.is_local ? op.attributes.window : 0,
          .workspace = workspace(op),
          .cut = op.cut};
}

template <>
inline const char* missing<CachedAttention>(const OpView& op) {
  if (op.has(Slot::bias)) return "attention sinks";
  return op[Slot::v].dim(3) != op[Slot::q].dim(3) ? "attention whose values have another size than its keys" : nullptr;
}

}  // namespace snug::kernels
