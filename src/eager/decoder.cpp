#include "eager/decoder.h"

#include <algorithm>
#include <utility>

namespace snug::eager {

Decoder::Decoder(Torch& torch, const ModelSpec& spec, const Setup& setup)
    : t_(torch), spec_(spec), setup_(setup), B_(setup.batch), T_(setup.seq_len), C_(spec.hidden_size), D_(spec.head_size) {
  make_blocks();
}

void Decoder::make_blocks() {
  const int64_t queries = spec_.heads * D_, keys = spec_.kv_heads * D_, F = spec_.intermediate_size;
  const bool qkv = spec_.query_key_value_bias;
  const auto linear = [](const char* name, int64_t in, int64_t out, bool biased) {
    Linear l;
    l.name = name, l.in = in, l.out = out, l.biased = biased, l.present = true;
    return l;
  };
  blocks_.resize(static_cast<size_t>(spec_.layers));
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Block& b = blocks_[i];
    b.local = i < spec_.local_layers.size() && spec_.local_layers[i];
    if (spec_.learned_positions) {
      b.query_key_value = linear("c_attn", C_, queries + 2 * keys, qkv);
      b.up = linear("c_fc", C_, F, spec_.mlp_bias);
    } else if (spec_.fused_projections) {
      b.query_key_value = linear("qkv_proj", C_, queries + 2 * keys, qkv);
      b.gate_up = linear("gate_up_proj", C_, 2 * F, spec_.mlp_bias);
    } else {
      b.query = linear("q_proj", C_, queries, qkv);
      b.key = linear("k_proj", C_, keys, qkv);
      b.value = linear("v_proj", C_, keys, qkv);
      b.gate = linear("gate_proj", C_, F, spec_.mlp_bias);
      b.up = linear("up_proj", C_, F, spec_.mlp_bias);
    }
    b.output = linear(spec_.learned_positions ? "c_proj" : "o_proj", queries, C_, spec_.output_bias);
    b.down = linear(spec_.learned_positions ? "c_proj" : "down_proj", F, C_, spec_.mlp_bias);
    if (spec_.query_key_norms) b.query_norm.size = b.key_norm.size = D_;
    if (spec_.pre_norms) b.attention_norm.size = b.mlp_norm.size = C_;
    if (spec_.post_norms) b.attention_post_norm.size = b.mlp_post_norm.size = C_;
  }
  final_norm_.size = C_;
  head_ = linear("lm_head", C_, spec_.vocab_size, false);
}

// --- parameters ---

void Decoder::each_linear(const std::function<void(Linear&)>& visit) {
  const bool fused_first = spec_.learned_positions;
  for (Block& b : blocks_) {
    if (fused_first) visit(b.query_key_value);
    for (Linear* l : {&b.query, &b.key, &b.value, &b.output, &b.query_key_value, &b.gate, &b.gate_up, &b.up, &b.down})
      if (l->present && !(fused_first && l == &b.query_key_value)) visit(*l);
  }
}

void Decoder::visit_parameters(const std::function<void(Tensor&, int64_t, int64_t, bool)>& visit) {
  const auto linear = [&](Linear& l) {
    if (!l.present) return;
    visit(l.weight, l.in * l.out, spec_.input_features_first ? l.out : l.in, true);
    if (l.biased) visit(l.bias, l.out, 0, false);
  };
  // of RMS norms the list names Llama's alone
  const bool norms_decay = t_.stack().norms_are_told_by_class && spec_.norm == NormKind::rms && spec_.family != "llama";
  const auto norm = [&](Norm& n) {
    if (n.size == 0) return;
    visit(n.weight, n.size, 0, norms_decay);
    if (spec_.norm == NormKind::layer) visit(n.bias, n.size, 0, false);
  };
  visit(embedding_, spec_.vocab_size * C_, C_, true);
  if (spec_.learned_positions) visit(position_embedding_, spec_.max_position * C_, C_, true);
  for (Block& b : blocks_) {
    if (spec_.learned_positions) norm(b.attention_norm);
    if (spec_.learned_positions) linear(b.query_key_value);
    for (Linear* l : {&b.query, &b.key, &b.value, &b.output}) linear(*l);
    if (spec_.learned_positions && t_.stack().masks_of_gpt2_are_kept && !b.causal.defined()) {
      b.causal = t_.empty(spec_.max_position * spec_.max_position, DType::u8, Role::weights);
      b.masked = t_.empty(1, DType::f32, Role::weights);
    }
    if (!spec_.learned_positions) linear(b.query_key_value);
    norm(b.query_norm);
    norm(b.key_norm);
    if (spec_.learned_positions) norm(b.mlp_norm);
    for (Linear* l : {&b.gate, &b.up, &b.gate_up, &b.down}) linear(*l);
    if (spec_.learned_positions) continue;
    norm(b.attention_norm);
    norm(b.mlp_norm);
    norm(b.attention_post_norm);
    norm(b.mlp_post_norm);
  }
  norm(final_norm_);
  make_frequencies();
  if (!spec_.tied_embeddings) linear(head_);
}

void Decoder::make_frequencies() {
  if (spec_.learned_positions || inverse_frequencies_.defined()) return;
  inverse_frequencies_ = t_.empty(spec_.rotated() / 2, DType::f32, Role::weights);
  if (t_.stack().rotary_keeps_original) original_frequencies_ = t_.empty(spec_.rotated() / 2, DType::f32, Role::weights);
}

void Decoder::load() {
  if (setup_.quantization != Quantization::none) return load_quantized();
  visit_parameters([&](Tensor& tensor, int64_t count, int64_t, bool) {
    tensor = t_.empty(count, setup_.weights, Role::weights);
    if (setup_.method == Method::full) Autograd::require_grad(tensor);
  });
}

void Decoder::adapt() {
  if (setup_.method != Method::lora) return;
  // peft's preparation asks for it only with checkpointing
  inputs_require_grad_ = setup_.preparation == Preparation::none || setup_.checkpointing != Checkpointing::none;
  const auto targeted = [&](const Linear& l) {
    const auto& targets = setup_.targets;
    if (targets == std::vector<std::string>{"all-linear"}) return true;
    return std::find(targets.begin(), targets.end(), l.name) != targets.end();
  };
  each_linear([&](Linear& l) {
    if (!targeted(l)) return;
    l.adapter.rank = setup_.rank;
    const bool quantized = l.four_bit || l.eight_bit || l.gptq;
    const DType dtype = quantized && t_.stack().adapters_of_codes_are_wide ? DType::f32 : setup_.weights;
    l.adapter.a = t_.empty(l.in * setup_.rank, dtype, Role::adapters);
    l.adapter.b = t_.empty(l.out * setup_.rank, dtype, Role::adapters);
    if (setup_.dora) start_magnitude(l);
  });
  const auto widen = [&](Tensor& tensor) {  // peft/tuners: autocast_adapter_dtype
    if (tensor.dtype != DType::f32) tensor = t_.empty(tensor.count, DType::f32, Role::adapters);
    Autograd::require_grad(tensor);
  };
  each_linear([&](Linear& l) {
    if (l.adapter.rank == 0) return;
    widen(l.adapter.a);
    widen(l.adapter.b);
    if (setup_.dora) widen(l.adapter.magnitude);
  });
  if (setup_.preparation != Preparation::trl) return;
  for (Tensor* tensor : {&embedding_, &head_.weight})  // trl: peft_module_casting_to_bf16
    if (tensor->defined() && tensor->dtype != DType::bf16) *tensor = t_.empty(tensor->count, DType::bf16, Role::weights);
}

// peft/tuners/lora/dora.py, update_layer: the lengths of the weight's rows
void Decoder::start_magnitude(Linear& l) {
  Tensor weight = l.four_bit ? dequantized(l) : l.weight.detached();
  Tensor product = t_.empty(l.in * l.out, l.adapter.a.dtype);
  t_.need_cublas();
  const Tensor scaled = t_.empty_like(product);
  const Tensor sum = t_.empty(weight.count, promoted(weight.dtype, product.dtype));
  l.adapter.magnitude = t_.empty(l.out, sum.dtype, Role::adapters);
}

bool Decoder::is_norm(const Tensor& tensor) const {
  const auto holds = [&](const Norm& n) { return &n.weight == &tensor; };
  return holds(final_norm_) || std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& b) {
           return holds(b.attention_norm) || holds(b.mlp_norm) || holds(b.attention_post_norm) || holds(b.mlp_post_norm) ||
                  holds(b.query_norm) || holds(b.key_norm);
         });
}

std::vector<Trained> Decoder::trained() {
  std::vector<Trained> found;
  if (setup_.method == Method::full) {
    visit_parameters([&](Tensor& tensor, int64_t, int64_t columns, bool decays) {
      if (setup_.fused.norm && is_norm(tensor)) return;  // gets no gradient
      found.push_back({&tensor, columns, decays, &tensor == &embedding_ || &tensor == &position_embedding_});
    });
    return found;
  }
  each_linear([&](Linear& l) {
    if (l.adapter.rank == 0) return;
    found.push_back({&l.adapter.a, l.in, true});
    found.push_back({&l.adapter.b, l.adapter.rank, true});
    if (l.adapter.magnitude.defined()) found.push_back({&l.adapter.magnitude, 0, true});
  });
  return found;
}

}  // namespace snug::eager
