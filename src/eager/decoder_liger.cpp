// Liger's kernels in the place of transformers' code (liger_kernel/ops, as of 0.8): what each keeps, and what its backward
// writes over instead of allocating.

#include <algorithm>
#include <bit>
#include <utility>

#include "eager/decoder.h"

namespace snug::eager {

// ops/rms_norm.py: the input's gradient is written over the output's, but for Gemma 2 and 3 (in_place); the weight's is
// gathered once a multiprocessor.
Tensor Decoder::liger_norm(const Tensor& x, const Norm& n) {
  Tensor y = t_.empty_like(x);
  const Tensor roots = t_.empty(x.count / n.size, DType::f32);
  const bool in_place = spec_.family != "gemma2" && !spec_.family.starts_with("gemma3");
  t_.record({x, n.weight}, {&y}, {x, n.weight, roots},
            [this, in_place, C = n.size](const Node& node, const Tensors& saved, Tensors& g) -> Tensors {
              const bool wanted = node.needs(1);
              const Tensor parts = wanted ? t_.empty(t_.multiprocessors * C, DType::f32) : Tensor{};
              Tensors results{in_place ? g[0] : t_.empty_like(g[0]), Tensor{}};
              if (wanted) results[1] = t_.to(t_.sum_rows(parts, C), saved[1].dtype);
              return results;
            });
  return y;
}

// ops/rope.py: both ways in place; gradients that lie head by head are copied first.
void Decoder::liger_rotation(Tensor& query, Tensor& key, const Positions& where) {
  Tensor turned = query.detached(), turned_key = key.detached();
  const bool by_sdpa = setup_.attention == Attention::sdpa && !t_.stack().sdpa_copies_inputs;
  const bool lies = setup_.attention == Attention::flash || by_sdpa;
  const bool repeats = spec_.heads > spec_.kv_heads && value_gradient_is_copied(where);
  t_.record({query, key}, {&turned, &turned_key}, {},
            [this, lies, repeats](const Node&, const Tensors&, Tensors& g) -> Tensors {
              Tensors results{lies ? g[0] : t_.empty_like(g[0]), Tensor{}};
              results[1] = lies && !repeats ? g[1] : t_.empty_like(g[1]);
              return results;
            });
  query = std::move(turned);
  key = std::move(turned_key);
}

// ops/swiglu.py and geglu.py: gradients are written over what was kept.
Tensor Decoder::liger_gate(const Tensor& gate, const Tensor& up) {
  Tensor y = t_.empty_like(gate);
  t_.record({gate, up}, {&y}, {gate, up}, [](const Node&, const Tensors& saved, Tensors&) -> Tensors {
    return {saved[0], saved[1]};
  });
  return y;
}

// trainer.py prediction_step: logits are left out where nobody asks for them; before, an evaluation made them all.
bool Decoder::fuses_liger_head() const {
  if (t_.training) return setup_.liger.linear_loss;
  return setup_.liger.linear_loss && t_.stack().evaluation_skips_logits && !setup_.evaluation.keeps_outputs;
}

// transformers/model/loss_utils.py LigerForCausalLMLoss and ops/fused_linear_cross_entropy.py: gradients are made in
// forward, a chunk of rows at a time, and only scaled in backward.
Tensor Decoder::liger_linear_loss(const Tensor& hidden) {
  const Tensor last = t_.stack().full_slices_are_nodes ? t_.full_slices(hidden, 3) : t_.slice(hidden, hidden.count);
  const Tensor& weight = spec_.tied_embeddings ? embedding_ : head_.weight;
  const int64_t rows = B_ * T_;
  const Tensor padded = t_.empty(B_ * (T_ + 1), DType::i64), labels = B_ > 1 ? t_.empty(rows, DType::i64) : padded;
  const Tensor gradient = t_.empty_like(last), weight_gradient = weight.requires_grad ? t_.empty_like(weight) : Tensor{};
  Tensor loss;
  {
    const Tensor losses = t_.empty(rows, DType::f32), counts = t_.empty(rows, DType::u8);
    {
      const Tensor number = t_.empty(1, DType::i64);
      t_.empty(rows, DType::i64);  // of the reduction
    }
    const bool grads = std::exchange(t_.grad_enabled, false);
    liger_gradients(last, weight, gradient.dtype);
    t_.grad_enabled = grads;
    loss = t_.empty(1, DType::f32);
  }
  t_.record({last, weight}, {&loss}, {gradient, weight_gradient},
            [this](const Node& node, const Tensors& saved, Tensors&) -> Tensors {
              { const Tensor one = t_.empty(1, DType::f32); }
              return {node.needs(0) ? saved[0] : Tensor{}, node.needs(1) ? saved[1] : Tensor{}};
            });
  return t_.scale(loss);
}

// fused_linear_cross_entropy_forward: chunks share one tensor of logits where autocast casts nothing, else each has its own
// and casts of its own.
void Decoder::liger_gradients(const Tensor& hidden, const Tensor& weight, DType dtype) {
  const int64_t V = spec_.vocab_size, rows = B_ * T_, parts = (V + C_ - 1) / C_;
  const auto wanted = static_cast<uint64_t>((rows + parts - 1) / parts);
  const int64_t chunk = std::min(static_cast<int64_t>(std::bit_ceil(wanted)), rows);
  const bool casts = t_.autocasts() && (hidden.dtype != t_.autocast_dtype() || weight.dtype != t_.autocast_dtype());
  const Tensor storage = casts ? Tensor{} : t_.empty(chunk * V, dtype);
  for (int64_t begin = 0; begin < rows; begin += chunk) {
    const int64_t count = std::min(chunk, rows - begin);
    Tensor part = hidden.detached(), logits = storage;
    part.count = count * C_;
    if (casts) {
      logits = t_.linear(part, weight.detached(), {}, C_, V);
      const Tensor narrow = t_.autocast_product(weight);
      const Tensor product = t_.empty(part.count, logits.dtype);
    }
    t_.need_cublas();
    if (!weight.requires_grad) continue;
    const Tensor again = part.dtype != logits.dtype ? t_.empty(part.count, logits.dtype) : Tensor{};
    const bool adds_apart = weight.dtype == DType::f32 && logits.dtype == DType::f32;
    const Tensor apart = adds_apart ? t_.empty(weight.count, DType::f32) : Tensor{};
    t_.need_cublas();
  }
}

}  // namespace snug::eager
