// LitGPT's forward pass, in the order of litgpt/model.py: what a frame's locals hold, they hold here.

#include <algorithm>
#include <utility>

#include "eager/litgpt.h"

namespace snug::eager {

Tensors LitGpt::forward(int64_t tokens, bool training, int64_t chunk) {
  T_ = tokens;
  training_ = training;
  Tensors narrow;
  {
    Tensor x = embedded();
    if (spec_.embedding_scale != 1.0) x = t_.scale(x);
    for (Block& b : blocks_) x = block(x, b);
    x = norm(x, final_norm_);
    if (chunk > 0) {  // lora.py, GPT.forward
      std::vector<int64_t> counts;
      for (int64_t begin = 0; begin < T_; begin += chunk) counts.push_back(B_ * std::min(chunk, T_ - begin) * C_);
      for (const Tensor& part : t_.split(x, counts)) narrow.push_back(apply(part, head_));
    } else {
      x = apply(x, head_);
      if (spec_.logit_softcap > 0) x = t_.scale(t_.keeps_output(t_.scale(x)));
      narrow.push_back(x);
    }
  }
  // lightning/fabric/wrappers.py: to the default dtype, which outside the module is fp32
  Tensors wide;
  wide.reserve(narrow.size());
  for (const Tensor& logits : narrow) wide.push_back(t_.to(logits, DType::f32));
  return wide;
}

// nn.Embedding; bitsandbytes/nn/modules.py, StableEmbedding.forward
Tensor LitGpt::embedded() {
  Tensor rows = t_.embedding(embedding_, B_ * T_, C_);
  if (!embedding_norm_.weight.defined()) return rows;
  return t_.layer_norm_as_it_is(rows, embedding_norm_.weight, embedding_norm_.bias, B_ * T_);
}

Tensor LitGpt::block(const Tensor& input, Block& b) {
  Tensor x = input, normed = norm(x, b.norm_1);
  Tensor attended = attention(normed, b);
  if (spec_.post_norms) attended = norm(attended, b.post_attention);
  if (spec_.parallel != ParallelBlock::none) {
    if (spec_.parallel == ParallelBlock::two_norms) normed = norm(x, b.norm_2);
    const Tensor sum = t_.add(mlp(normed, b), attended);
    return t_.add(sum, x);
  }
  x = t_.add(attended, x);
  Tensor made = mlp(norm(x, b.norm_2), b);
  if (spec_.post_norms) made = norm(made, b.post_mlp);
  return t_.add(made, x);
}

// RMSNorm.forward, nn.LayerNorm
Tensor LitGpt::norm(const Tensor& x, const Norm& n) {
  const int64_t rows = x.count / C_;
  if (spec_.norm == NormKind::layer) return t_.layer_norm_as_it_is(x, n.weight, n.bias, rows);
  const DType dtype = t_.stack().litgpt_widens_norms ? DType::f32 : x.dtype;
  const Tensor wide = t_.to(x, dtype);
  Tensor mean;
  {
    const Tensor square = t_.mul(wide, wide);
    mean = t_.mean(square, rows);
  }
  Tensor normed;
  {
    const Tensor root = t_.rsqrt(t_.add_number(mean));
    normed = t_.mul(wide, root, true);
  }
  const Tensor weight = spec_.norms_from_zero ? t_.add_number(n.weight) : n.weight;
  return t_.to(t_.mul(normed, t_.to(weight, dtype)), x.dtype);
}

// CausalSelfAttention.forward; locals are declared from the last to the first, so that they go from the first to the last.
Tensor LitGpt::attention(const Tensor& x, Block& b) {
  Tensor mixed, mask, turned_key, turned, v, k, q;
  const Tensor all = t_.transposed_view(apply_qkv(x, b.qkv));
  {
    const Tensors parts = t_.split(all, {elements(H_), elements(K_), elements(K_)});
    const bool grouped = K_ != H_;
    // queries of groups do not follow each other in memory; those of one group do
    q = grouped && K_ > 1 ? t_.clone(parts[0]) : parts[0];
    k = grouped ? expanded(parts[1]) : parts[1];
    v = grouped ? expanded(parts[2]) : parts[2];
  }
  turned = rotated(q);
  turned_key = rotated(k);
  q = with_rest(turned, q);
  k = with_rest(turned_key, k);
  if (b.windowed) mask = window_mask(q.dtype);
  mixed = attend(q, k, v, mask);
  return apply(mixed, b.output);
}

// k.expand(…) and reshape: a copy, but of one head
Tensor LitGpt::expanded(const Tensor& x) {
  const int64_t times = H_ / K_;
  if (K_ > 1) return t_.repeat(x, times);
  Tensor view = x.detached();
  view.count = x.count * times;
  t_.record({x}, {&view}, {}, [this, count = x.count](const Node&, const Tensors&, Tensors& g) -> Tensors {
    return {t_.empty(count, g[0].dtype)};  // sum
  });
  return view;
}

// apply_rope, of x[..., :rope_n_elem]
Tensor LitGpt::rotated(const Tensor& whole) {
  const int64_t count = whole.count / D_ * spec_.rotated();
  Tensor sum;
  const Tensor x = count == whole.count ? t_.full_slices(whole, 1) : t_.slice(whole, count);
  const Tensor first = t_.slice(x, count / 2), second = t_.slice(x, count / 2);
  const Tensor turned = t_.cat({t_.neg(second), first});
  {
    const Tensor straight = t_.mul(x, cos_), across = t_.mul(turned, sin_);
    sum = t_.add(straight, across);
  }
  return t_.to(sum, x.dtype);
}

// torch.cat((roped, x[..., rope_n_elem:]))
Tensor LitGpt::with_rest(const Tensor& turned, const Tensor& x) {
  if (turned.count == x.count) return t_.cat({turned});
  return t_.cat({turned, t_.slice(x, x.count - turned.count)});
}

Tensor LitGpt::window_mask(DType dtype) {
  const auto square = [&](DType of) { return t_.empty(T_ * T_, of); };
  Tensor mask = square(dtype);
  mask = square(dtype);  // triu
  { const Tensor later = square(DType::u8); }
  Tensor bias = square(dtype);
  bias = square(dtype);  // tril
  const Tensor before = square(DType::u8);
  return mask;
}

// scaled_dot_product_attention and what follows it: y.transpose(1, 2).reshape(…)
Tensor LitGpt::attend(const Tensor& q, const Tensor& k, const Tensor& v, Tensor mask) {
  if (spec_.attention_softcap > 0) return attend_softly(q, k, v, std::move(mask));
  AttentionShape shape{B_, T_, H_, D_};
  shape.head_by_head = true;
  shape.random_state = t_.stack().flash_makes_random_state;
  // ATen/native/transformers/cuda/sdp_utils.cpp: heads wider than 192 need more shared memory in backward than these have
  const bool narrow_card = t_.compute_capability() == 86 || t_.compute_capability() == 89;
  const bool too_wide = narrow_card && D_ > 192 && q.requires_grad && t_.grad_enabled;
  if (mask.defined() || too_wide || !is_half(q.dtype)) return efficient_attention(t_, q, k, v, mask, shape);
  return t_.clone(flash_attention(t_, q, k, v, shape));
}

// Where scores are capped: products and a softmax.
Tensor LitGpt::attend_softly(const Tensor& q, const Tensor& k, const Tensor& v, Tensor mask) {
  const int64_t count = B_ * H_ * T_ * T_;
  Tensor scores = t_.scale(t_.matmul(q, k, count));
  scores = t_.scale(t_.keeps_output(t_.scale(scores)));
  if (!mask.defined()) {
    mask = t_.empty(T_ * T_, q.dtype);
    mask = t_.empty(T_ * T_, q.dtype);  // triu
    const Tensor later = t_.empty(T_ * T_, DType::u8);
  }
  scores = t_.add(scores, mask);
  scores = t_.to(t_.softmax(scores, DType::f32), q.dtype);
  return t_.clone(t_.matmul(scores, v, q.count));
}

// GptNeoxMLP, LLaMAMLP, GemmaMLP
Tensor LitGpt::mlp(const Tensor& input, Block& b) {
  Tensor x = apply(input, b.fc_1);
  if (!spec_.gated_mlp) return apply(t_.keeps_input(x), b.down);
  const Tensor up = apply(input, b.fc_2);
  Tensor product;
  {
    const Tensor gate = t_.keeps_input(x);
    product = t_.mul(gate, up);
  }
  return apply(product, b.down);
}

}  // namespace snug::eager
