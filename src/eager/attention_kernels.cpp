#include "eager/attention_kernels.h"

namespace snug::eager {

Tensor flash_attention(Torch& t, const Tensor& q, const Tensor& k, const Tensor& v, const AttentionShape& shape) {
  const Tensor value = t.autocast_product(v), key = t.autocast_product(k), query = t.autocast_product(q);
  t.before({query, key, value}, {query, key, value});
  Tensor output = t.empty_like(query);
  Tensor sums = t.empty(shape.batch * shape.heads * shape.tokens, DType::f32);
  Tensors kept{query, key, value, output, sums};
  if (shape.random_state) {
    kept.push_back(t.empty(2, DType::i64));
    if (t.stack().flash_makes_random_state) kept.push_back(t.empty(1, DType::i64));
  }
  t.record({query, key, value}, {&output}, kept,
           [&t, copies = shape.head_by_head](const Node&, const Tensors& saved, Tensors&) -> Tensors {
             const Tensor contiguous = copies ? t.empty_like(saved[3]) : Tensor{};
             Tensors results(3);
             for (size_t i = 0; i < 3; ++i) results[i] = t.empty_like(saved[i]);
             const Tensor row_sums = t.empty(saved[4].count, DType::f32);
             const Tensor query_sums = t.empty(saved[0].count, DType::f32);
             const bool shares = saved[1].count < saved[0].count;  // keys and values of several heads are gathered apart
             const Tensor keys = shares ? t.empty_like(saved[0]) : Tensor{},
                          values = shares ? t.empty_like(saved[0]) : Tensor{};
             return results;
           });
  return output;
}

// Log-sums of rows are rounded up to 32, and made only where backward will come; backward gathers the queries' gradient in
// fp32.
Tensor efficient_attention(Torch& t, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                           const AttentionShape& shape) {
  const Tensor value = t.autocast_product(v), key = t.autocast_product(k), query = t.autocast_product(q);
  const bool boolean = mask.defined() && mask.dtype == DType::u8;
  const Tensor bias = boolean ? t.empty(mask.count, query.dtype) : mask;
  const int64_t rows = shape.batch * shape.heads;
  t.before({query, key, value}, {query, key, value});
  Tensor output = t.empty_like(query);
  const bool keeps = t.grad_enabled && query.requires_grad;
  const Tensor sums = keeps ? t.empty(rows * ((shape.tokens + 31) / 32 * 32), DType::f32) : Tensor{};
  {  // kernel_forward.h: wide heads gather their output in fp32
    const Tensor gathered = shape.head_size > 128 && is_half(query.dtype) ? t.empty(query.count, DType::f32) : Tensor{};
  }
  t.record({query, key, value}, {&output}, {query, key, value, output, sums, bias},
           [&t, rows](const Node&, const Tensors& saved, Tensors&) -> Tensors {
             Tensors results(3);
             for (size_t i = 0; i < 3; ++i) results[i] = t.empty_like(saved[i]);
             const bool shares = saved[1].count < saved[0].count;
             const Tensor keys = shares ? t.empty_like(saved[0]) : Tensor{},
                          values = shares ? t.empty_like(saved[0]) : Tensor{};
             Tensor delta;
             if (is_half(saved[0].dtype)) {
               delta = t.empty(saved[4].count, DType::f32);
             } else {  // the sum of a product
               const Tensor product = t.empty_like(saved[0]), sum = t.empty(saved[4].count, DType::f32);
               delta = t.empty(saved[4].count, DType::f32);
             }
             const Tensor query_sums = t.empty(saved[0].count + rows * 32, DType::f32);
             return results;
           });
  return output;
}

}  // namespace snug::eager
