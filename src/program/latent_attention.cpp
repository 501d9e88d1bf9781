// Multi-head latent attention (DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1): keys and values are made from one row of low
// rank for each token; beside it stands the part of the keys that rotates, one for all heads. Queries may come from a row of
// low rank too. Trained as written, without the inference trick that folds products into one another.

#include "program/block_builder.h"

namespace snug {

TensorId BlockBuilder::latent_queries(Region& body, TensorId x) {
  const std::vector<Extent> queries = {shape_.batch, shape_.seq_len, spec_.heads, spec_.head_size};
  const int64_t rank = spec_.latent.query_rank;
  if (rank == 0) return linear(body, "query", x, queries);
  return linear(body, "query", norm(body, "query_norm", linear(body, "query_down", x, {tokens(), rank})), queries);
}

// x [M, C] -> queries and keys [B, T, H, D], rotated in their last part, and values [B, T, H, their size].
std::array<TensorId, 3> BlockBuilder::latent_queries_keys_values(Region& body, TensorId x) {
  const int64_t B = shape_.batch, T = shape_.seq_len, H = spec_.heads, D = spec_.head_size;
  const int64_t rank = spec_.latent.rank, rotary = spec_.rotary_size, plain = D - rotary, values = spec_.latent.value_size;
  const TensorId q = latent_queries(body, x);
  rotate(body, q, plain);

  const TensorId down = linear(body, "key_value_down", x, {B * T, rank + rotary});
  const TensorId low = activation("key_value_low", {B * T, rank}), turned = activation("key_rotary", {B, T, 1, rotary});
  Op split{OpKind::split};
  body.add(std::move(split.reads(Slot::x, down).writes(Slot::a, low).writes(Slot::b, turned)));
  rotate(body, turned);
  const TensorId up = linear(body, "key_value", norm(body, "key_value_norm", low), {B, T, H, plain + values});

  const TensorId k = activation("key", {B, T, H, D}), v = activation("value", {B, T, H, values});
  Op heads{OpKind::latent_heads};
  heads.reads(Slot::x, up).reads(Slot::rows, turned).writes(Slot::k, k).writes(Slot::v, v);
  body.add(std::move(heads));
  return {q, k, v};
}

}  // namespace snug
