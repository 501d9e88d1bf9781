// A gated delta rule by flash-linear-attention's kernels (fla/ops/gated_delta_rule/chunk.py, ChunkGatedDeltaRuleFunction;
// seen in 0.6), which transformers takes where that library is installed.

#include <utility>

#include "eager/decoder.h"

namespace snug::eager {

namespace {

// chunk_o.py, chunk_bwd_dqkwg: into how many parts of the keys' numbers the decay's gradient falls, by how much a block of
// threads can share.
int64_t parts_of_keys(int64_t key_size, int compute_capability, bool half) {
  const bool largest = compute_capability >= 90 && compute_capability < 120, large = compute_capability == 80;
  const int64_t tile = largest || (large && half) ? 128 : large || compute_capability == 89 ? 64 : 32;
  int64_t power = 16;
  while (power < key_size) power *= 2;
  const int64_t block = power < tile ? power : tile;
  return (key_size + block - 1) / block;
}

}  // namespace

// Copies lie token by token; what backward needs of chunks it makes again.
Tensor Decoder::fused_delta_rule(const DeltaHeads& given) {
  const DeltaNet& of = spec_.delta_net;
  const DType dtype = given.query.dtype;
  const int64_t tokens = B_ * T_, heads = tokens * of.value_heads, chunks = (T_ + 63) / 64;
  const DeltaSizes n{.keys = heads * of.key_size,
                     .values = heads * of.value_size,
                     .states = B_ * chunks * of.value_heads * of.key_size * of.value_size,
                     .heads = heads,
                     .groups = of.value_heads / of.key_heads};
  Tensor output;
  Tensors kept;
  {
    const Tensor query = t_.empty_like(given.query), key = t_.empty_like(given.key), value = t_.empty_like(given.value);
    const Tensor unit_query = t_.empty_like(query), query_roots = t_.empty(tokens * of.key_heads, DType::f32);
    const Tensor unit_key = t_.empty_like(key), key_roots = t_.empty(tokens * of.key_heads, DType::f32);
    const Tensor sums = t_.empty(heads, DType::f32), solved = t_.empty(heads * 64, dtype);
    const Tensor old_keys = t_.empty(n.keys, dtype), values = t_.empty(n.values, dtype);
    const Tensor states = t_.empty(n.states, dtype), fresh = t_.empty(n.values, dtype);
    output = t_.empty(n.values, dtype);
    kept = {unit_query, query_roots, unit_key, key_roots, value, sums, given.beta, solved};
  }
  t_.record({given.query, given.key, given.value, given.decay, given.beta}, {&output}, kept,
            [this, n](const Node&, const Tensors& saved, Tensors&) -> Tensors { return fused_delta_gradients(n, saved); });
  return output;
}

Tensors Decoder::fused_delta_gradients(const DeltaSizes& n, const Tensors& saved) {
  const Tensor &unit_query = saved[0], &unit_key = saved[2], &value = saved[4], &beta = saved[6];
  const DType dtype = unit_query.dtype;
  const int64_t parts = parts_of_keys(spec_.delta_net.key_size, t_.compute_capability(), is_half(dtype));
  Tensor of_query, of_key, of_value, of_beta, of_decay;
  const auto summed_over_groups = [&](Tensor& gradient) {
    if (n.groups > 1) gradient = t_.empty_like(unit_query);
  };
  {
    const Tensor old_keys = t_.empty(n.keys, dtype), values = t_.empty(n.values, dtype);
    const Tensor states = t_.empty(n.states, dtype), fresh = t_.empty(n.values, dtype);
    of_value = t_.empty(n.values, dtype);
    const Tensor of_states = t_.empty(n.states, dtype);
    of_value = t_.empty(n.values, dtype);
    of_query = t_.empty(n.keys, dtype);
    of_key = t_.empty(n.keys, dtype);
    of_decay = t_.empty(parts * n.heads, DType::f32);
    const Tensor of_old_keys = t_.empty(n.keys, dtype);
    summed_over_groups(of_query);
    summed_over_groups(of_key);
    of_decay = t_.empty(n.heads, DType::f32);
    Tensor of_key_too = t_.empty(n.keys, dtype);
    Tensor of_given_value = t_.empty_like(value);
    const Tensor of_decay_too = t_.empty(n.heads, DType::f32);
    of_beta = t_.empty_like(beta);
    summed_over_groups(of_key_too);
    of_value = std::move(of_given_value);
    of_decay = t_.empty(n.heads, DType::f32);
  }
  of_query = t_.empty_like(unit_query);
  of_key = t_.empty_like(unit_key);
  return {of_query, of_key, of_value, of_decay, of_beta};
}

}  // namespace snug::eager
