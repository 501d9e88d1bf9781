// The forward pass, in the order of transformers' modeling files.

#include <utility>

#include "eager/decoder.h"

namespace snug::eager {

Decoder::Outputs Decoder::evaluate(int64_t rows, int64_t tokens) {
  const int64_t trained_rows = std::exchange(B_, rows), trained_tokens = std::exchange(T_, tokens);
  t_.training = false;
  Outputs outputs = forward();
  t_.training = true;
  B_ = trained_rows;
  T_ = trained_tokens;
  return outputs;
}

Decoder::Outputs Decoder::forward() {
  Tensor hidden;
  Tensor logits;
  if (flat_) flat_->begin_forward();
  {
    // GPT2Model.forward: both, and what they give, are locals to its end.
    const bool places_first = is_gpt2() && t_.stack().gpt2_cache_is_tuples;
    Tensor places = places_first ? t_.empty(T_, DType::i64) : Tensor{};
    Tensor embedded = this->embedded();
    if (is_gpt2() && !places_first) places = t_.add_number(t_.empty(T_, DType::i64));
    const Tensor of_places = is_gpt2() ? t_.embedding(position_embedding_, T_, C_) : Tensor{};
    if (is_gpt2()) hidden = t_.add(embedded, of_places);
    const bool granite = spec_.family.starts_with("granite");
    if (granite) embedded = t_.scale(embedded);
    const Positions where = positions();
    if (is_gpt2()) {
      hidden = t_.dropout(hidden, spec_.dropout);
    } else if (spec_.learned_positions) {
      hidden = opt_positions(embedded);
    } else {
      hidden = spec_.embedding_scale != 1.0 && !granite && !embedding_scales() ? t_.scale(embedded) : embedded;
    }
    hidden = blocks(std::move(hidden), where);
    if (sharded_) hidden = sharded_->before_forward(sharded_->head(), hidden);
    hidden = norm(hidden, final_norm_);
  }
  Tensor value;
  if (setup_.chunked_loss) {
    value = chunked_loss(hidden);
  } else if (fuses_liger_head()) {
    value = liger_linear_loss(hidden);
  } else if (setup_.fused.linear_loss) {
    value = fused_linear_loss(hidden);
  } else {
    logits = head(hidden);
    if (sharded_) logits = sharded_->after_forward(sharded_->head(), logits);
    value = loss(logits);
  }
  hidden = {};
  if (sharded_) sharded_->end_forward();
  if (setup_.autocast) t_.leave_autocast();
  if (setup_.autocast && !setup_.own_loop) {  // accelerate, ConvertOutputsToFp32
    if (logits.defined()) logits = t_.to(logits, DType::f32);
    Tensors wide;  // a cache that is an object stays as it is
    if (is_gpt2() && t_.stack().gpt2_cache_is_tuples)
      for (const Tensor& part : cache_) wide.push_back(t_.to(part, DType::f32));
  }
  cache_.clear();
  if (setup_.ranks.finds_unused && t_.training) {  // torch/nn/parallel/distributed.py, _DDPSink
    value = t_.clone(value);
    if (logits.defined()) logits = t_.clone(logits);
  }
  return {flat_ ? flat_->end_forward(value) : value, logits};
}

// A module with parameters of its own, which DeepSpeed's third stage gathers for it.
Tensor Decoder::called(const void* key, const std::vector<const Tensor*>& parameters, const Tensor& input,
                       const std::function<Tensor(const Tensor&)>& forward) {
  if (partitioned_ == nullptr) return forward(input);
  return partitioned_->call(key, parameters, input, forward);
}

// Whether its module does so itself, before a hook makes a leaf of what it gives.
bool Decoder::embedding_scales() const {
  return spec_.family.starts_with("gemma") && spec_.embedding_scale != 1.0 &&
         (t_.stack().embeddings_scale_themselves || spec_.family.starts_with("gemma3"));
}

Tensor Decoder::embedded() {
  if (sharded_) sharded_->before_forward(sharded_->is_tied() ? sharded_->head() : 0, {});
  Tensor embedded = called(&embedding_, {&embedding_}, {}, [this](const Tensor&) {
    Tensor rows = t_.embedding(embedding_, B_ * T_, C_);
    if (embedding_scales()) rows = t_.scale(rows);
    if (inputs_require_grad_ && t_.grad_enabled && !rows.requires_grad) Autograd::require_grad(rows);
    return rows;
  });
  if (sharded_ && !sharded_->is_tied()) embedded = sharded_->after_forward(0, embedded);
  return embedded;
}

// modeling_llama.py, LlamaModel.forward and LlamaRotaryEmbedding.forward
Decoder::Positions Decoder::positions() {
  const bool grads = std::exchange(t_.grad_enabled, false);
  Positions p;
  if (!spec_.learned_positions) p.indices = t_.empty(T_, DType::i64);
  if (is_hybrid()) p.indices = t_.add_number(p.indices);
  if (is_hybrid() && setup_.padded) p.padding = {{}, B_ * T_, DType::i64};  // the batch's own
  if (setup_.attention == Attention::sdpa && !always_has_mask()) {
    const Tensor equal = t_.empty(B_ * T_, DType::u8), all = t_.empty(1, DType::u8);
  }
  p.mask = causal_mask();
  p.window = window_mask();
  if (!spec_.learned_positions) angles(p);
  if (spec_.family == "olmo3" || norms_follow_projections()) {  // for each kind of layer
    Positions other;
    angles(other);
    p.cos_other = other.cos, p.sin_other = other.sin;
  }
  t_.grad_enabled = grads;
  return p;
}

// LlamaRotaryEmbedding.forward
void Decoder::angles(Positions& p) {
  if (is_qwen1()) return qwen_angles(p);
  if (is_hybrid()) return hybrid_angles(p);
  Tensor indices = t_.empty(T_, DType::f32);
  const Tensor angles = t_.empty(spec_.rotated() / 2 * T_, DType::f32);
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
  const DType dtype = embedding_.dtype;
  p.cos = t_.to(cos, dtype);
  p.sin = t_.to(sin, dtype);
}

Tensor Decoder::blocks(Tensor hidden, const Positions& where) {
  size_t unit = sharded_ && !sharded_->is_tied() ? 1 : 0;
  for (Block& b : blocks_) {
    const auto run = [this, &b, where](const Tensor& x) { return block(x, b, where); };
    if (flat_ && t_.stack().checkpoints_are_within_layers) {
      hidden = in_unit(&b, hidden, [&](const Tensor& x) { return checkpointed(x, run); });
      continue;
    }
    if (flat_) {
      hidden = checkpointed(hidden, [this, &b, run](const Tensor& x) { return in_unit(&b, x, run); });
      continue;
    }
    if (sharded_) hidden = sharded_->before_forward(unit, hidden);
    hidden = checkpointed(hidden, run);
    if (sharded_) hidden = sharded_->after_forward(unit++, hidden);
  }
  return hidden;
}

Tensor Decoder::checkpointed(const Tensor& input, const std::function<Tensor(const Tensor&)>& block) {
  const Checkpointing kind = t_.training ? setup_.checkpointing : Checkpointing::none;
  if (kind == Checkpointing::reentrant) return t_.checkpoint_reentrant(input, block);
  return kind == Checkpointing::non_reentrant ? t_.checkpoint_non_reentrant(input, block) : block(input);
}

// A module that FSDP 1 has wrapped.
Tensor Decoder::in_unit(const void* key, const Tensor& input, const std::function<Tensor(const Tensor&)>& forward) {
  if (flat_ == nullptr) return forward(input);
  return flat_->after_forward(key, forward(flat_->before_forward(key, input)));
}

// Gemma2DecoderLayer.forward: a block that sees a window cuts the mask itself.
Decoder::Positions Decoder::in_window(const Positions& where, Tensor& window) {
  if (!always_has_mask()) return where;
  {
    const Tensor ones = t_.empty(where.mask.count, DType::u8);
    window = t_.empty(where.mask.count, DType::u8);
  }
  Positions here = where;
  here.mask = t_.empty(where.mask.count, where.mask.dtype);
  return here;
}

Tensor Decoder::block(const Tensor& input, Block& b, const Positions& where) {
  Tensor window;
  Positions here = b.local && where.mask.defined() ? in_window(where, window) : where;
  if (b.local && where.window.defined()) here.mask = where.window;
  Tensor shares;
  here.shares = &shares;
  if (spec_.naming == TensorNaming::stablelm) return stable_block(input, b, here);
  if (spec_.naming == TensorNaming::phi) return phi_block(input, b, here);
  if (is_qwen1()) return qwen_block(input, b, here);
  Tensor residual = input;
  Tensor x = spec_.pre_norms ? norm(input, b.attention_norm) : input;
  x = b.delta.output.present ? delta_attention(x, b, here) : attention(x, b, here);
  if (spec_.post_norms) x = norm(x, b.attention_post_norm);
  const bool granite = spec_.family.starts_with("granite"), opt = spec_.naming == TensorNaming::opt;
  if (opt) x = t_.dropout(x, spec_.dropout);
  x = t_.add(residual, granite ? t_.scale(x) : x);
  residual = x;
  if (spec_.pre_norms) x = norm(x, b.mlp_norm);
  x = spec_.experts.count > 0 ? experts(x, b) : mlp(x, b);
  if (spec_.post_norms) x = norm(x, b.mlp_post_norm);
  if (opt) x = t_.dropout(x, spec_.dropout);
  x = t_.add(residual, granite ? t_.scale(x) : x);
  return x;
}

Tensor Decoder::attention(const Tensor& x, Block& b, const Positions& where) {
  Tensor query, key, value;
  if (is_gpt2()) {  // GPT2Attention
    Tensors parts = t_.split(apply(x, b.query_key_value), {B_ * T_ * C_, B_ * T_ * C_, B_ * T_ * C_});
    query = t_.transposed_view(parts[0]);
    key = t_.transposed_view(parts[1]);
    value = value_gradient_is_copied(where) ? t_.transposed_view(parts[2]) : parts[2];
  } else if (spec_.fused_projections) {  // Phi3Attention
    const Tensor all = apply(x, b.query_key_value);
    const int64_t queries = B_ * T_ * spec_.heads * D_, keys = B_ * T_ * spec_.kv_heads * D_;
    query = t_.transposed_view(t_.slice(all, queries));
    key = t_.transposed_view(t_.slice(all, keys));
    value = t_.slice(all, keys);
    if (value_gradient_is_copied(where)) value = t_.transposed_view(value);
    return attended(query, key, value, b, where, {});
  } else if (spec_.gated_attention) {
    return gated_attention(x, b, where);
  } else if (fuses_adapters({&b.query, &b.key, &b.value})) {
    Tensors all = fused_adapters(x, {&b.query, &b.key, &b.value});
    query = viewed_by_heads(all[0]);
    key = viewed_by_heads(all[1]);
    value = value_gradient_is_copied(where) ? t_.transposed_view(all[2]) : all[2];
  } else if (setup_.liger.rope || (setup_.fused.rope && b.query_norm.size == 0)) {
    query = viewed_by_heads(apply(x, b.query));
    if (b.query_norm.size > 0) query = norm(query, b.query_norm);
    key = viewed_by_heads(apply(x, b.key));
    if (b.key_norm.size > 0) key = norm(key, b.key_norm);
    value = apply(x, b.value);
    if (value_gradient_is_copied(where)) value = t_.transposed_view(value);
  } else {
    const bool wide = spec_.wide_query_key_norms;  // before heads are told apart
    query = apply(x, b.query);
    if (wide) query = norm(query, b.query_norm);
    if (spec_.naming == TensorNaming::opt) query = t_.scale(query);
    query = t_.transposed_view(query);
    const bool normed = !wide && b.query_norm.size > 0, later = norms_follow_projections();
    if (normed && !later) query = norm(query, b.query_norm);
    key = apply(x, b.key);
    if (wide) key = norm(key, b.key_norm);
    if (spec_.kv_heads > 1) key = t_.transposed_view(key);
    if (normed && !later) key = norm(key, b.key_norm);
    value = apply(x, b.value);
    if (value_gradient_is_copied(where)) value = t_.transposed_view(value);
    if (normed && later) query = norm(query, b.query_norm);
    if (normed && later) key = norm(key, b.key_norm);
  }
  return attended(query, key, value, b, where, {});
}

// Queries or keys head by head: fused rotations give a gradient that lies as the projection's output does.
Tensor Decoder::viewed_by_heads(const Tensor& x) {
  return setup_.fused.rope || setup_.liger.rope ? x : t_.transposed_view(x);
}

// Whether the values' gradient lies head by head, so that a view of it as the projection's output is a copy.
bool Decoder::value_gradient_is_copied(const Positions& where) const {
  if (setup_.attention == Attention::flash || spec_.kv_heads == 1) return false;
  if (setup_.attention == Attention::eager || t_.stack().sdpa_copies_inputs) return true;
  const bool half = is_half(setup_.weights) || setup_.autocast.has_value();
  const bool by_itself = !where.mask.defined() && (half || t_.stack().efficient_shares_heads);
  return !by_itself && spec_.heads > spec_.kv_heads;
}

// From projections to the block's residual; `gate` is of what attention gives, where there is one.
Tensor Decoder::attended(Tensor& query, Tensor& key, Tensor value, Block& b, const Positions& where, const Tensor& gate) {
  Tensors locals;
  if (setup_.liger.rope) {
    liger_rotation(query, key, where);
  } else if (spec_.rotated() < D_) {
    rotate_part(query, key, where, locals);
  } else if (!spec_.learned_positions) {
    const auto turn = [&](const Tensor& x) {
      if (setup_.fused.rope) return fused_rotation(x);
      return joins_rotations() ? t_.cat({rotate(x, where)}) : rotate(x, where);
    };
    Tensor turned = turn(query), turned_key = turn(key);
    query = std::move(turned);
    key = std::move(turned_key);
  }
  if (keeps_cache()) {
    if (t_.stack().cache_copies_first) key = t_.cat({key});
    if (t_.stack().cache_copies_first) value = value.dtype == key.dtype ? t_.cat({value}) : t_.to(value, key.dtype);
    cache_.push_back(key);
    cache_.push_back(value);
  }
  Tensor mixed = setup_.attention == Attention::eager ? attend_eagerly(query, key, value, where)
                                                      : attend(query, key, value, where.mask);
  if (gate.defined()) mixed = t_.mul(mixed, t_.keeps_output(gate));
  Tensor output = apply(mixed, b.output);
  return drops_outputs() ? t_.dropout(output, spec_.dropout) : output;
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

Tensor Decoder::mlp(const Tensor& x, Block& b) {
  if (!spec_.gated_mlp) return plain_mlp(x, b);
  if (spec_.fused_gate_up) {  // Phi3MLP
    const Tensor both = apply(x, b.gate_up);
    Tensors parts = t_.split(both, {both.count / 2, both.count / 2});
    {
      const Tensor gate = t_.keeps_input(parts[0]);
      parts[1] = t_.mul(parts[1], gate);
    }
    return apply(parts[1], b.down);
  }
  Tensor gate = apply(x, b.gate);
  if (setup_.liger.mlp) {
    {
      const Tensor up = apply(x, b.up);
      gate = liger_gate(gate, up);
    }
    return apply(gate, b.down);
  }
  gate = t_.keeps_input(gate);
  {
    const Tensor up = apply(x, b.up);
    gate = t_.mul(gate, up);
  }
  gate = apply(gate, b.down);
  return drops_outputs() ? t_.dropout(gate, spec_.dropout) : gate;
}

// activations.py, NewGELUActivation: 0.5 x (1 + tanh(c (x + 0.044715 x^3)))
Tensor Decoder::new_gelu(const Tensor& x) {
  const Tensor half = t_.scale(x);
  Tensor h = t_.square(t_.autocast_float(x));  // pow(3)
  h = t_.scale(h);
  h = t_.add(x, h);
  h = t_.scale(h);
  h = t_.keeps_output(h);
  h = t_.add_number(h);
  return t_.mul(half, h);
}

Tensor Decoder::apply(const Tensor& x, Linear& l) {
  if (fuses_adapters({&l}) && l.name == "o_proj") return fused_adapters(x, {&l})[0];
  if (l.adapter.rank == 0) return base(x, l);
  // which reads lora_A's dtype, and so has its weight as an external parameter under DeepSpeed's third stage
  return called(&l.adapter, {&l.adapter.a}, x, [&](const Tensor& y) { return adapted(y, l); });
}

// peft/tuners/lora/layer.py and bnb.py, Linear.forward
Tensor Decoder::adapted(const Tensor& input, Linear& l) {
  const bool quantized = l.four_bit || l.eight_bit || l.gptq, casts = !quantized || !t_.autocasts();
  Tensor result = base(input, l);
  if (l.four_bit) result = t_.clone(result);
  const DType dtype = result.dtype;
  Tensor x = casts ? t_.to(input, l.adapter.a.dtype) : input;
  if (setup_.dora) {
    x = t_.dropout(x, setup_.dropout);
    Tensor output = decomposed(x, result, l);
    if (quantized && casts) output = t_.to(output, dtype);
    result = t_.add(result, output);
    output = {};
    return quantized ? result : t_.to(result, dtype);
  }
  const auto low_rank = [&](Tensor& weight, const Tensor& y, int64_t in, int64_t out) {
    return called(&weight, {&weight}, y, [&](const Tensor& z) {
      return in_unit(&weight, z, [&](const Tensor& u) { return t_.linear(u, weight, {}, in, out); });
    });
  };
  Tensor low;
  {
    const Tensor dropped = t_.dropout(x, setup_.dropout);
    low = low_rank(l.adapter.a, dropped, l.in, l.adapter.rank);
  }
  Tensor high = low_rank(l.adapter.b, low, l.adapter.rank, l.out);
  low = {};
  high = t_.scale(high);
  if (quantized && casts) high = t_.to(high, dtype);
  result = l.gptq ? t_.add_in_place(result, high) : t_.add(result, high);  // lora/gptq.py: result += output
  high = {};
  return quantized ? result : t_.to(result, dtype);
}

// peft/tuners/lora/dora.py, DoraLinearLayer.forward: what is added to `base_output`
Tensor Decoder::decomposed(const Tensor& x, const Tensor& base_output, Linear& l) {
  const auto low_rank = [&](const Tensor& of) {
    const Tensor low = t_.linear(of, l.adapter.a, {}, l.in, l.adapter.rank);
    return t_.linear(low, l.adapter.b, {}, l.adapter.rank, l.out);
  };
  const bool late = t_.stack().dora_uses_base_output, reuses = late && (setup_.dropout == 0 || !t_.training);
  const bool apart = t_.stack().dora_product_follows_adapter;
  Tensor added;
  if (!late) added = low_rank(x);
  Tensor eye = t_.empty(l.in * l.in, apart ? l.adapter.a.dtype : x.dtype);
  Tensor product = low_rank(eye);
  if (apart) eye = {};  // before, a local of the whole function
  if (apart) product = t_.to(product, x.dtype);
  Tensor weight = l.four_bit ? dequantized(l) : l.weight.detached();
  weight = t_.to(weight, x.dtype);
  Tensor lengths;
  {
    Tensor sum = t_.scale(product.detached());
    sum = t_.add(weight, sum);
    lengths = t_.empty(l.out, sum.dtype);
  }
  const Tensor ratio = t_.mul(l.adapter.magnitude, lengths);
  if (late) added = low_rank(x);
  Tensor through = reuses ? base_output : Tensor{};
  if (reuses && l.biased) through = t_.add(through, l.bias);
  Tensor turned;
  {
    const Tensor less = t_.add_number(ratio);
    if (!reuses) through = t_.linear(x, weight, {}, l.in, l.out);
    turned = t_.mul(less, through);
  }
  if (!reuses) through = {};
  Tensor scaled = t_.mul(ratio, added);
  scaled = t_.scale(scaled);
  return t_.add(turned, scaled);
}

}  // namespace snug::eager
