// What becomes of the last block's output: logits and their cross entropy, or TRL's head that makes logits in tiles.

#include <algorithm>

#include "eager/decoder.h"

namespace snug::eager {

namespace {

// trl/kernels/chunked_logprob.py: a tile of logits is of so many tokens and words, however few there are of these.
constexpr int64_t kTileTokens = 4096, kTileWords = 32768;

}  // namespace

Tensor Decoder::head(const Tensor& hidden) {
  Tensor logits;
  {
    const Tensor last = t_.full_slices(hidden, 3);  // [:, -0:, :]
    Linear& head = head_;
    const Tensor& weight = spec_.tied_embeddings ? embedding_ : head.weight;
    logits = called(&head, {&weight, &head.bias}, last,
                    [&](const Tensor& x) { return t_.linear(x, weight, head.bias, head.in, head.out); });
  }
  if (spec_.family.starts_with("granite")) logits = t_.scale(logits);
  if (spec_.logit_softcap > 0) {
    logits = t_.scale(logits);
    logits = t_.keeps_output(logits);
    logits = t_.scale(logits);
  }
  return logits;
}

// loss/loss_utils.py, ForCausalLMLoss
Tensor Decoder::loss(Tensor& logits) {
  const int64_t V = spec_.vocab_size, rows = B_ * (T_ - 1);
  const bool narrow = setup_.own_loss || is_qwen1() || (is_gpt2() && t_.stack().gpt2_loss_stays_narrow);
  const Tensor wide = narrow ? logits : t_.to(logits, DType::f32);
  if (t_.stack().forward_widens_logits && !is_qwen1()) logits = wide;
  Tensor shifted = wide, labels, padded;
  if (t_.stack().loss_copies_logits || setup_.own_loss || is_qwen1()) {
    shifted = t_.full_slices(t_.slice(wide, rows * V), 1);
    if (B_ > 1) shifted = t_.clone(shifted);
    if (B_ > 1) labels = t_.empty(rows, DType::i64);
  } else {
    padded = t_.empty(B_ * (T_ + 1), DType::i64);
    labels = B_ > 1 ? t_.empty(B_ * T_, DType::i64) : padded;
  }
  if (setup_.fused.loss) return fused_loss(shifted, labels);
  // cross_entropy_loss names log_softmax's dtype, which autocast then leaves alone; it widens what nll_loss gets
  const Tensor logarithms = t_.autocast_float(t_.keeps_output(shifted));
  Tensor sum = t_.empty(1, DType::f32), weight = t_.empty(1, DType::f32);
  t_.record({logarithms}, {&sum}, {logarithms, labels, weight},
            [this](const Node&, const Tensors& saved, Tensors&) -> Tensors { return {t_.empty_like(saved[0])}; });
  return t_.scale(sum);
}

// trl/trainer/utils.py add_fused_lm_head and trl/kernels/chunked_logprob.py ChunkedLogProbFunction: rows whose label counts
// are taken out, log-probabilities gathered tile by tile; backward makes each tile again and sums gradients in fp32.
Tensor Decoder::chunked_loss(const Tensor& hidden) {
  const int64_t rows = B_ * (T_ - 1), V = spec_.vocab_size;
  const Tensor weight = spec_.tied_embeddings ? embedding_ : head_.weight, mask = t_.empty(rows, DType::u8);
  Tensor kept = t_.empty(rows * C_, hidden.dtype);
  const Tensor places = t_.empty(2 * rows, DType::i64), targets = t_.empty(rows, DType::i64);
  t_.record({hidden}, {&kept}, {places},
            [this, rows, all = hidden.count](const Node&, const Tensors&, Tensors& g) -> Tensors {
              const Tensor shifted = t_.empty(rows * C_, g[0].dtype);
              return {t_.empty(all, g[0].dtype)};
            });
  const DType compute = t_.autocasts() ? t_.autocast_dtype() : hidden.dtype;
  Tensor probabilities = t_.empty(rows, DType::f32), entropy = t_.empty(rows, DType::f32), sums = t_.empty(rows, DType::f32);
  {
    const Tensor running = t_.empty(6 * rows, DType::f32);
    const Tensor tile = t_.empty(std::min(rows, kTileTokens) * kTileWords, compute);
    chunk_products(rows, weight, hidden.dtype, compute);
  }
  t_.record({kept, weight}, {&probabilities}, {kept, weight, targets, sums, entropy},
            [this, rows, V, compute](const Node& node, const Tensors& saved, Tensors&) -> Tensors {
              Tensors results(2);
              const Tensor wide = t_.empty(saved[0].count, DType::f32);
              const Tensor wide_weight = node.needs(1) ? t_.empty(V * C_, DType::f32) : Tensor{};
              {
                const Tensor tile = t_.empty(std::min(rows, kTileTokens) * kTileWords, compute);
                chunk_products(rows, saved[1], saved[0].dtype, compute);
              }
              results[0] = t_.to(wide, saved[0].dtype);
              if (node.needs(1)) results[1] = t_.to(wide_weight, saved[1].dtype);
              return results;
            });
  const Tensor scattered = t_.scale(probabilities);
  return t_.scale(scattered);
}

// Casts of a tile's rows and of the weight's, and the product.
void Decoder::chunk_products(int64_t rows, const Tensor& weight, DType dtype, DType compute) {
  const int64_t tokens = std::min(rows, kTileTokens), words = std::min(spec_.vocab_size, kTileWords);
  const Tensor chunk = dtype != compute ? t_.empty(tokens * C_, compute) : Tensor{};
  const Tensor part = weight.dtype != compute ? t_.empty(words * C_, compute) : Tensor{};
  t_.need_cublas();
}

}  // namespace snug::eager
