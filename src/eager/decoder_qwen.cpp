// Qwen 1, whose code came with its files (modeling_qwen.py, as of late 2023): GPT-2's order of modules, rotations in fp32,
// one linear for queries, keys and values, a loss from the logits as they are.

#include <utility>

#include "eager/decoder.h"

namespace snug::eager {

// QWenBlock.forward: what a norm and attention gave stays a local until another takes its name, or the block ends.
Tensor Decoder::qwen_block(const Tensor& input, Block& b, const Positions& where) {
  Tensor normed = norm(input, b.attention_norm);
  const Tensor attended = qwen_attention(normed, b, where);
  const Tensor residual = t_.add(attended, input);
  normed = norm(residual, b.mlp_norm);
  const Tensor wide = qwen_mlp(normed, b);
  return t_.add(residual, wide);
}

// QWenAttention.forward; the output of c_attn is a local until it ends, and values are a view of it.
Tensor Decoder::qwen_attention(const Tensor& x, Block& b, const Positions& where) {
  const Tensor mixed = apply(x, b.query_key_value);
  const int64_t part = mixed.count / 3;
  Tensors parts = t_.split(mixed, {part, part, part});
  const Tensor query = qwen_rotation(parts[0], where);
  const Tensor key = qwen_rotation(parts[1], where);
  const Tensor value = std::move(parts[2]);
  parts.clear();
  if (keeps_cache()) cache_.insert(cache_.end(), {key, value});
  const Tensor attended = flash(query, key, value, false);
  return apply(attended, b.output);
}

// RotaryEmbedding.update_rotary_pos_emb_cache
void Decoder::qwen_angles(Positions& p) {
  const int64_t numbers = D_ * T_;
  if (!kept_cos_.defined() || kept_cos_.count < numbers) {
    const Tensor angles = t_.empty(numbers, DType::f32);  // D/2 of each of 2 T places
    t_.need_cublas();
    const Tensor both = t_.cat({angles, angles});
    kept_cos_ = t_.scale(both);
    kept_sin_ = t_.scale(both);
  }
  p.cos = kept_cos_.detached();
  p.sin = kept_sin_.detached();
  p.cos.count = p.sin.count = numbers;
}

// apply_rotary_pos_emb without flash-attn's own kernel, which its setup does not build.
Tensor Decoder::qwen_rotation(const Tensor& x, const Positions& where) {
  const Tensor wide = t_.to(x, DType::f32);
  Tensor turned = rotate(wide, where);
  turned = t_.cat({turned});  // with what does not turn: nothing
  return t_.to(turned, x.dtype);
}

// QWenMLP.forward
Tensor Decoder::qwen_mlp(const Tensor& x, Block& b) {
  const Tensor up = apply(x, b.up);
  const Tensor gate = apply(x, b.gate);
  Tensor product;
  {
    const Tensor opened = t_.keeps_input(gate);
    product = t_.mul(up, opened);
  }
  return apply(product, b.down);
}

}  // namespace snug::eager
