// Attention as transformers offers it: PyTorch's fused kernels, or products and a softmax.

#include <utility>

#include "eager/decoder.h"

namespace snug::eager {

// _prepare_4d_causal_attention_mask_with_cache_position
Tensor Decoder::causal_mask() {
  if (setup_.attention != Attention::eager) return {};
  const DType dtype = embedding_.dtype;
  if (t_.stack().masks_are_boolean) {  // masking_utils.py, eager_mask
    Tensor square = t_.empty(T_ * T_, DType::u8);
    square = t_.empty(T_ * T_, DType::u8);
    const Tensor padding = t_.empty(B_ * T_ * T_, DType::u8);
    return t_.empty(B_ * T_ * T_, dtype);
  }
  Tensor square = t_.empty(T_ * T_, dtype);
  square = t_.empty(T_ * T_, dtype);  // triu
  {
    Tensor indices = t_.empty(T_, DType::i64);
    const Tensor later = t_.empty(T_ * T_, DType::u8);
  }
  Tensor mask = t_.empty(B_ * T_ * T_, dtype);
  square = {};
  Tensor padding = t_.empty(B_ * T_ * T_, dtype);
  padding = t_.empty(B_ * T_ * T_, DType::u8);
  {
    const Tensor filled = t_.empty(B_ * T_ * T_, dtype);
  }
  return mask;
}

// eager_attention_forward
Tensor Decoder::attend_eagerly(Tensor query, Tensor key, Tensor value, const Tensor& mask) {
  const int64_t times = spec_.heads / spec_.kv_heads, scores = B_ * spec_.heads * T_ * T_;
  if (times > 1) {
    key = t_.repeat(t_.full_slices(key, 4), times);
    value = t_.repeat(t_.full_slices(value, 4), times);
  }
  // matmul reshapes to batches of matrices: a copy where head and batch do not follow each other in memory
  const auto batched = [&](const Tensor& x, bool contiguous) { return B_ > 1 && !contiguous ? t_.clone(x) : x; };
  Tensor weights;
  {
    const Tensor q = batched(query, false), k = batched(key, times > 1);
    weights = t_.matmul(q, k, scores);
  }
  weights = t_.scale(weights);
  weights = t_.add(weights, mask);
  {
    const Tensor shares = t_.softmax(weights, DType::f32);
    weights = t_.to(shares, query.dtype);
  }
  Tensor output;
  {
    const Tensor v = batched(value, times > 1);
    output = t_.matmul(weights, v, query.count);
  }
  return t_.clone(output);
}

// integrations/sdpa_attention.py
Tensor Decoder::attend(Tensor query, Tensor key, Tensor value, const Tensor&) {
  if (!t_.stack().sdpa_copies_inputs) return scaled_dot_product(query, key, value);
  const int64_t times = spec_.heads / spec_.kv_heads;
  if (times > 1) {
    key = t_.repeat(t_.full_slices(key, 4), times);
    value = t_.repeat(t_.full_slices(value, 4), times);
    query = t_.clone(query);
  } else {
    query = t_.clone(query);
    key = t_.clone(key);
    value = t_.clone(value);
  }
  const Tensor output = scaled_dot_product(query, key, value);
  return t_.clone(output);
}

// ATen/native/transformers/cuda: _scaled_dot_product_flash_attention and its backward
Tensor Decoder::scaled_dot_product(const Tensor& q, const Tensor& k, const Tensor& v) {
  const Tensor value = t_.autocast_product(v), key = t_.autocast_product(k), query = t_.autocast_product(q);
  Tensor output = t_.empty_like(query);
  Tensor sums = t_.empty(B_ * spec_.heads * T_, DType::f32);
  Tensors kept{query, key, value, output, sums};
  if (t_.stack().flash_makes_random_state) {
    kept.push_back(t_.empty(2, DType::i64));
    kept.push_back(t_.empty(1, DType::i64));
  }
  const bool copies = t_.stack().sdpa_copies_inputs;  // then the output lies in another order than its gradient
  t_.record({query, key, value}, {&output}, kept, [this, copies](const Node&, const Tensors& saved, Tensors&) -> Tensors {
    const Tensor contiguous = copies ? t_.empty_like(saved[3]) : Tensor{};
    Tensors results(3);
    for (size_t i = 0; i < 3; ++i) results[i] = t_.empty_like(saved[i]);
    const Tensor row_sums = t_.empty(saved[4].count, DType::f32);
    const Tensor query_sums = t_.empty(saved[0].count, DType::f32);
    const bool shares = saved[1].count < saved[0].count;  // keys and values of several heads are gathered apart
    const Tensor keys = shares ? t_.empty_like(saved[0]) : Tensor{}, values = shares ? t_.empty_like(saved[0]) : Tensor{};
    return results;
  });
  return output;
}

}  // namespace snug::eager
