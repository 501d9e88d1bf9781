// The forward pass, in the order of transformers' modeling files.

#include <utility>

#include "eager/decoder.h"

namespace snug::eager {

Tensor Decoder::forward(bool training) {
  Tensor hidden;
  Tensor logits;
  {
    Tensor embedded = t_.embedding(embedding_, B_ * T_, C_);
    if (inputs_require_grad_ && t_.grad_enabled) Autograd::require_grad(embedded);
    const Positions where = positions();
    hidden = blocks(embedded, where, training);
    hidden = norm(hidden, final_norm_);
  }
  {
    const Tensor last = t_.stack().full_slices_are_nodes ? t_.full_slices(hidden, 3) : t_.slice(hidden, hidden.count);  // [:, -0:, :]
    Linear& head = head_;
    logits = t_.linear(last, spec_.tied_embeddings ? embedding_ : head.weight, head.bias, head.in, head.out);
  }
  return loss(logits);
}

// modeling_llama.py, LlamaModel.forward and LlamaRotaryEmbedding.forward
Decoder::Positions Decoder::positions() {
  const bool grads = std::exchange(t_.grad_enabled, false);
  Positions p;
  p.indices = t_.empty(T_, DType::i64);
  {
    const Tensor equal = t_.empty(B_ * T_, DType::u8), all = t_.empty(1, DType::u8);
  }
  Tensor indices = t_.empty(T_, DType::f32);
  const Tensor angles = t_.empty(D_ / 2 * T_, DType::f32);
  if (t_.stack().rotary_by_product) {
    t_.need_cublas();
  } else {
    indices = {};
  }
  const Tensor both = t_.cat({angles, angles});
  Tensor cos, sin;
  if (t_.stack().rotary_by_product) {
    cos = t_.scale(both);
    sin = t_.scale(both);
    cos = t_.scale(cos);
    sin = t_.scale(sin);
  } else {
    cos = t_.scale(both);
    cos = t_.scale(cos);
    sin = t_.scale(both);
    sin = t_.scale(sin);
  }
  const DType dtype = setup_.weights;
  p.cos = t_.to(cos, dtype);
  p.sin = t_.to(sin, dtype);
  t_.grad_enabled = grads;
  return p;
}

Tensor Decoder::blocks(Tensor hidden, const Positions& where, bool training) {
  for (Block& b : blocks_) {
    const auto run = [this, &b, where](const Tensor& x) { return block(x, b, where); };
    const Checkpointing kind = training ? setup_.checkpointing : Checkpointing::none;
    if (kind == Checkpointing::reentrant) {
      hidden = t_.checkpoint_reentrant(hidden, run);
    } else if (kind == Checkpointing::non_reentrant) {
      hidden = t_.checkpoint_non_reentrant(hidden, run);
    } else {
      hidden = run(hidden);
    }
  }
  return hidden;
}

Tensor Decoder::block(const Tensor& input, Block& b, const Positions& where) {
  Tensor residual = input;
  Tensor x = norm(input, b.attention_norm);
  x = attention(x, b, where);
  x = t_.add(residual, x);
  residual = x;
  x = norm(x, b.mlp_norm);
  x = mlp(x, b);
  x = t_.add(residual, x);
  return x;
}

Tensor Decoder::attention(const Tensor& x, Block& b, const Positions& where) {
  Tensor query = t_.transposed_view(apply(x, b.query));
  Tensor key = t_.transposed_view(apply(x, b.key));
  Tensor value = apply(x, b.value);
  if (t_.stack().sdpa_copies_inputs) value = t_.transposed_view(value);
  {
    Tensor turned = rotate(query, where), turned_key = rotate(key, where);
    query = std::move(turned);
    key = std::move(turned_key);
  }
  const Tensor attended = attend(query, key, value);
  return apply(attended, b.output);
}

// apply_rotary_pos_emb
Tensor Decoder::rotate(const Tensor& x, const Positions& where) {
  const Tensor straight = t_.mul(x, where.cos);
  Tensor turned;
  {
    const Tensor first = t_.slice(x, x.count / 2), second = t_.slice(x, x.count / 2);
    const Tensor negated = t_.neg(second);
    turned = t_.cat({negated, first});
  }
  turned = t_.mul(turned, where.sin);
  return t_.add(straight, turned);
}

// integrations/sdpa_attention.py
Tensor Decoder::attend(Tensor query, Tensor key, Tensor value) {
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
Tensor Decoder::scaled_dot_product(const Tensor& query, const Tensor& key, const Tensor& value) {
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

Tensor Decoder::mlp(const Tensor& x, Block& b) {
  Tensor gate = apply(x, b.gate);
  gate = t_.keeps_input(gate);
  {
    const Tensor up = apply(x, b.up);
    gate = t_.mul(gate, up);
  }
  return apply(gate, b.down);
}

// LlamaRMSNorm.forward
Tensor Decoder::norm(const Tensor& x, const Norm& n) {
  Tensor h = t_.to(x, DType::f32);
  Tensor variance;
  {
    const Tensor square = t_.square(h);
    variance = t_.mean(square, x.count / n.size);
  }
  Tensor root;
  {
    const Tensor shifted = t_.add_number(variance);
    root = t_.rsqrt(shifted);
  }
  h = t_.mul(h, root);
  root = {};
  const Tensor narrow = t_.to(h, x.dtype);
  return t_.mul(n.weight, narrow);
}

Tensor Decoder::apply(const Tensor& x, Linear& l) {
  if (l.adapter.rank > 0) return adapted(x, l);
  return t_.linear(x, l.weight, l.bias, l.in, l.out);
}

// peft/tuners/lora/layer.py, Linear.forward
Tensor Decoder::adapted(const Tensor& input, Linear& l) {
  Tensor result = t_.linear(input, l.weight, l.bias, l.in, l.out);
  const DType dtype = result.dtype;
  const Tensor x = t_.to(input, l.adapter.a.dtype);
  Tensor low;
  {
    const Tensor dropped = t_.dropout(x, setup_.dropout);
    low = t_.linear(dropped, l.adapter.a, {}, l.in, l.adapter.rank);
  }
  Tensor high = t_.linear(low, l.adapter.b, {}, l.adapter.rank, l.out);
  low = {};
  high = t_.scale(high);
  result = t_.add(result, high);
  high = {};
  return t_.to(result, dtype);
}

// loss/loss_utils.py, ForCausalLMLoss
Tensor Decoder::loss(const Tensor& logits) {
  const int64_t V = spec_.vocab_size, rows = B_ * (T_ - 1);
  const Tensor wide = t_.to(logits, DType::f32);
  Tensor shifted = wide, labels, padded;
  if (t_.stack().loss_copies_logits) {
    shifted = t_.full_slices(t_.slice(wide, rows * V), 1);
    if (B_ > 1) shifted = t_.clone(shifted);
    if (B_ > 1) labels = t_.empty(rows, DType::i64);
  } else {
    padded = t_.empty(B_ * (T_ + 1), DType::i64);
    labels = B_ > 1 ? t_.empty(B_ * T_, DType::i64) : padded;
  }
  const Tensor logarithms = t_.keeps_output(shifted);
  Tensor sum = t_.empty(1, DType::f32), weight = t_.empty(1, DType::f32);
  t_.record({logarithms}, {&sum}, {logarithms, labels, weight}, [this](const Node&, const Tensors& saved, Tensors&) -> Tensors {
    return {t_.empty_like(saved[0])};
  });
  return t_.scale(sum);
}

}  // namespace snug::eager
