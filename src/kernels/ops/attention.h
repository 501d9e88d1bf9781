#pragma once

#include "kernels/binding.h"

namespace snug::kernels {

// Causal attention within documents: token t sees tokens document_start[t]..t of its own sequence, with a window the last
// `window` of them alone. With a softcap a scaled score s becomes softcap * tanh(s / softcap). Grouped queries: head h
// reads key/value head h / (H/K). Blocks of cut.rows queries by cut.cols keys with running softmax (Dao et al.,
// FlashAttention, 2022); no T x T matrix. lse[b, h, t] = log sum exp of the scaled scores. workspace:
// attention_workspace(...) as the op's rule states it, one part for each thread. There may be more keys, S, than queries.
// Of ranks that pass keys round a ring each step has other keys: with `sums` it goes on from them and lse, and what is
// made of all keys so far is as if they had come at once.
struct Attention {
  In q, k, v;                               // [B, T, H, D], [B, S, K, D], [B, S, K, D]
  const int32_t* document_start = nullptr;  // [B, T], index within the sequence
  Out out;                                  // [B, T, H, D]
  float* lse = nullptr;                     // [B, H, T]
  const float* sums = nullptr;              // as out, of the keys before; may be out itself. Null: these are the first
  int64_t batch = 0, seq_len = 0, heads = 0, kv_heads = 0, head_size = 0;
  int64_t keys = 0;                        // of each sequence, that are here: from this one on
  int64_t first_key = 0, first_query = 0;  // and at which the first query stands
  float scale = 1.0F;
  float softcap = 0;   // 0: none
  int64_t window = 0;  // tokens, 0: none
  Workspace workspace;
  Cut cut;
};

// d_q, d_k, d_v are written, or added to. lse and out are of all keys, also where only some are here. Work is split over
// (sequence, key/value head), so sums have one order.
struct AttentionBackward {
  const float* d_out = nullptr;  // [B, T, H, D]
  In q, k, v, out;
  const int32_t* document_start = nullptr;
  const float* lse = nullptr;  // [B, H, T]
  float* d_q = nullptr;        // [B, T, H, D]
  float* d_k = nullptr;        // [B, S, K, D]
  float* d_v = nullptr;
  int64_t batch = 0, seq_len = 0, heads = 0, kv_heads = 0, head_size = 0;
  int64_t keys = 0, first_key = 0, first_query = 0;  // as above
  float scale = 1.0F;
  float softcap = 0;
  int64_t window = 0;
  bool accumulate = false;
  Workspace workspace;
  Cut cut;
};

// Where ranks split a sequence, their queries are a stretch of it and the keys are all of it, or in a ring another stretch.
inline int64_t first_query_of(const OpView& op) {
  const OperandView& q = op[Slot::q];
  if (op.attributes.ring_step >= 0) return op.place * q.dim(1);
  return q.dim(1) == op[Slot::k].dim(1) ? 0 : q.first_element / (q.dim(2) * q.dim(3));
}

inline int64_t first_key_of(const OpView& op) {
  if (op.attributes.ring_step < 0) return 0;
  const int64_t ranks = op.attributes.ranks, steps = (op.attributes.ring_step + op.chunk) % ranks;
  return (op.place - steps + ranks) % ranks * op[Slot::k].dim(1);
}

// Whether any query may see any of the keys that are here: those of later ranks none does.
template <class Op>
bool sees_keys(const Op& op) {
  const int64_t last_query = op.first_query + op.seq_len - 1, last_key = op.first_key + op.keys - 1;
  return op.first_key <= last_query && (op.window == 0 || last_key > op.first_query - op.window);
}

template <>
inline Attention bind<Attention>(const OpView& op) {
  const OperandView& q = op[Slot::q];
  return {.q = in(op, Slot::q),
          .k = in(op, Slot::k),
          .v = in(op, Slot::v),
          .document_start = ints(op, Slot::document_start),
          .out = out(op, Slot::out),
          .lse = floats(op, Slot::lse),
          .sums = op.has(Slot::sums)         ? floats(op, Slot::sums)
                  : op.attributes.accumulate ? floats(op, Slot::out)
                                             : nullptr,
          .batch = q.dim(0),
          .seq_len = q.dim(1),
          .heads = q.dim(2),
          .kv_heads = op[Slot::k].dim(2),
          .head_size = q.dim(3),
          .keys = op[Slot::k].dim(1),
          .first_key = first_key_of(op),
          .first_query = first_query_of(op),
          .scale = static_cast<float>(op.attributes.scale),
          .softcap = static_cast<float>(op.attributes.softcap),
          .window = op.is_local ? op.attributes.window : 0,
          .workspace = workspace(op),
          .cut = op.cut};
}

template <>
inline AttentionBackward bind<AttentionBackward>(const OpView& op) {
  const OperandView& q = op[Slot::q];
  return {.d_out = floats(op, Slot::d_out),
          .q = in(op, Slot::q),
          .k = in(op, Slot::k),
          .v = in(op, Slot::v),
          .out = in(op, Slot::out),
          .document_start = ints(op, Slot::document_start),
          .lse = floats(op, Slot::lse),
          .d_q = floats(op, Slot::d_q),
          .d_k = floats(op, Slot::d_k),
          .d_v = floats(op, Slot::d_v),
          .batch = q.dim(0),
          .seq_len = q.dim(1),
          .heads = q.dim(2),
          .kv_heads = op[Slot::k].dim(2),
          .head_size = q.dim(3),
          .keys = op[Slot::k].dim(1),
          .first_key = first_key_of(op),
          .first_query = first_query_of(op),
          .scale = static_cast<float>(op.attributes.scale),
          .softcap = static_cast<float>(op.attributes.softcap),
          .window = op.is_local ? op.attributes.window : 0,
          .accumulate = op.attributes.accumulate,
          .workspace = workspace(op),
          .cut = op.cut};
}

// Sinks and values of another size than keys are planned, not run yet.
inline const char* missing_of_attention(const OpView& op) {
  if (op.has(Slot::bias)) return "attention sinks";
  return op[Slot::v].dim(3) != op[Slot::q].dim(3) ? "attention whose values have another size than its keys" : nullptr;
}
template <>
inline const char* missing<Attention>(const OpView& op) {
  return missing_of_attention(op);
}
template <>
inline const char* missing<AttentionBackward>(const OpView& op) {
  return missing_of_attention(op);
}

}  // namespace snug::kernels
