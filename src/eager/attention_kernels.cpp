#include "eager/attention_kernels.h"

#include <algorithm>
#include <cmath>

namespace snug::eager {

namespace {

int64_t rounded(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

// flash_attn/flash_api.cpp, num_splits_heuristic: among how many blocks of threads a row's keys are shared, so that they
// fill the card as well as the best number does to 85 %.
int64_t splits_of(int64_t blocks, int64_t slots, int64_t key_blocks) {
  if (static_cast<float>(blocks) >= 0.8F * static_cast<float>(slots)) return 1;
  const int64_t most = std::min({int64_t{128}, slots, key_blocks});
  const auto eligible = [&](int64_t splits) {
    return splits == 1 || parts_of(key_blocks, splits) != parts_of(key_blocks, splits - 1);
  };
  const auto efficiency = [&](int64_t splits) {
    const float waves = static_cast<float>(blocks * splits) / static_cast<float>(slots);
    return waves / std::ceil(waves);
  };
  float best = 0.0F;
  for (int64_t splits = 1; splits <= most; ++splits)
    if (eligible(splits)) best = std::max(best, efficiency(splits));
  for (int64_t splits = 1; splits <= most; ++splits)
    if (eligible(splits) && efficiency(splits) >= 0.85F * best) return splits;
  return 1;
}

int64_t padded_head(int64_t size) { return size <= 192 ? rounded(size, 32) : 256; }

// set_params_splitkv: each share's output and log-sums.
void share_keys(Torch& t, const AttentionShape& shape) {
  const int64_t of_block = shape.head_size <= 64 ? 256 : shape.head_size <= 128 ? 128 : 64;
  const int64_t rows = shape.batch * shape.heads;
  const int64_t splits =
      splits_of(rows * parts_of(shape.tokens, 64), 2 * t.multiprocessors, parts_of(shape.tokens, of_block));
  if (splits == 1) return;
  const Tensor sums = t.empty(splits * rows * shape.tokens, DType::f32);
  const Tensor outputs = t.empty(splits * rows * shape.tokens * padded_head(shape.head_size), DType::f32);
}

// mem_eff_attention/kernel_backward.h, workspace_strideBH: what one head of a row gathers its gradients in, numbers of fp32.
// Blocks of queries by columns, each with a lock; of wide heads in half precision keys and values too.
int64_t gradient_sums(const AttentionShape& shape, bool half) {
  const int64_t T = shape.tokens, D = shape.head_size;
  const int64_t rows = D <= 64 ? 64 : 128, columns = half && D > 64 && D <= 128 ? 128 : 64;
  const int64_t queries = parts_of(T, rows) * parts_of(D, columns) * (rows * columns + 4);
  return queries + (half && D > 128 ? 2 * rounded(T, 64) * rounded(D, 64) : 0);
}

}  // namespace

Tensor flash_attention(Torch& t, const Tensor& q, const Tensor& k, const Tensor& v, const AttentionShape& shape) {
  const Tensor value = t.autocast_product(v), key = t.autocast_product(k), query = t.autocast_product(q);
  t.before({query, key, value}, {query, key, value});
  Tensor output = t.empty_like(query);
  Tensor sums = t.empty(shape.batch * shape.heads * shape.tokens, DType::f32);
  if (shape.shares_keys) share_keys(t, shape);
  Tensors kept{query, key, value, output, sums};
  if (shape.random_state) {
    kept.push_back(t.empty(2, DType::i64));
    if (t.stack().flash_makes_random_state) kept.push_back(t.empty(1, DType::i64));
  }
  t.record({query, key, value}, {&output}, kept,
           [&t, copies = shape.head_by_head, rows = shape.batch * shape.heads * rounded(shape.tokens, 128),
            padded = padded_head(shape.head_size)](const Node&, const Tensors& saved, Tensors&) -> Tensors {
             const Tensor contiguous = copies ? t.empty_like(saved[3]) : Tensor{};
             Tensors results(3);
             for (size_t i = 0; i < 3; ++i) results[i] = t.empty_like(saved[i]);
             const Tensor row_sums = t.empty(rows, DType::f32);
             const Tensor query_sums = t.empty(rows * padded, DType::f32);
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
  Tensor bias = boolean ? t.empty(mask.count, query.dtype) : mask;
  if (boolean && shape.tokens % 16 != 0)  // attention.cpp, pad_bias
    bias = t.empty(mask.count / shape.tokens * rounded(shape.tokens, 16), query.dtype);
  const int64_t rows = shape.batch * shape.heads;
  t.before({query, key, value}, {query, key, value});
  Tensor output = t.empty_like(query);
  const bool keeps = t.grad_enabled && query.requires_grad;
  const Tensor sums = keeps ? t.empty(rows * ((shape.tokens + 31) / 32 * 32), DType::f32) : Tensor{};
  {  // kernel_forward.h: wide heads gather their output in fp32
    const Tensor gathered = shape.head_size > 128 && is_half(query.dtype) ? t.empty(query.count, DType::f32) : Tensor{};
  }
  t.record({query, key, value}, {&output}, {query, key, value, output, sums, bias},
           [&t, rows, shape](const Node&, const Tensors& saved, Tensors&) -> Tensors {
             Tensors results(3);
             for (size_t i = 0; i < 3; ++i) results[i] = t.empty_like(saved[i]);
             const bool shares = saved[1].count < saved[0].count;
             const Tensor keys = shares ? t.empty_like(saved[0]) : Tensor{},
                          values = shares ? t.empty_like(saved[0]) : Tensor{};
             Tensor delta;
             if (is_half(saved[0].dtype)) {
               delta = t.empty(rows * shape.tokens, DType::f32);
             } else {  // the sum of a product
               const Tensor product = t.empty_like(saved[0]), sum = t.empty(rows * shape.tokens, DType::f32);
               delta = t.empty(rows * shape.tokens, DType::f32);
             }
             const Tensor gathered = t.empty(rows * gradient_sums(shape, is_half(saved[0].dtype)), DType::f32);
             return results;
           });
  return output;
}

}  // namespace snug::eager
