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
  for (Block& b : blocks_) {
    if (spec_.fused_projections) {
      b.query_key_value = linear("qkv_proj", C_, queries + 2 * keys, qkv);
      b.gate_up = linear("gate_up_proj", C_, 2 * F, spec_.mlp_bias);
    } else {
      b.query = linear("q_proj", C_, queries, qkv);
      b.key = linear("k_proj", C_, keys, qkv);
      b.value = linear("v_proj", C_, keys, qkv);
      b.gate = linear("gate_proj", C_, F, spec_.mlp_bias);
      b.up = linear("up_proj", C_, F, spec_.mlp_bias);
    }
    b.output = linear("o_proj", queries, C_, spec_.output_bias);
    b.down = linear("down_proj", F, C_, spec_.mlp_bias);
    if (spec_.query_key_norms) b.query_norm.size = b.key_norm.size = D_;
    if (spec_.pre_norms) b.attention_norm.size = b.mlp_norm.size = C_;
    if (spec_.post_norms) b.attention_post_norm.size = b.mlp_post_norm.size = C_;
  }
  final_norm_.size = C_;
  head_ = linear("lm_head", C_, spec_.vocab_size, false);
}

// --- parameters ---

void Decoder::each_linear(const std::function<void(Linear&)>& visit) {
  for (Block& b : blocks_)
    for (Linear* l : {&b.query, &b.key, &b.value, &b.output, &b.query_key_value, &b.gate, &b.up, &b.gate_up, &b.down})
      if (l->present) visit(*l);
}

void Decoder::visit_parameters(const std::function<void(Tensor& tensor, int64_t count, bool decays)>& visit) {
  const auto linear = [&](Linear& l) {
    if (!l.present) return;
    visit(l.weight, l.in * l.out, true);
    if (l.biased) visit(l.bias, l.out, false);
  };
  const auto norm = [&](Norm& n) {
    if (n.size == 0) return;
    visit(n.weight, n.size, false);
    if (spec_.norm == NormKind::layer) visit(n.bias, n.size, false);
  };
  visit(embedding_, spec_.vocab_size * C_, true);
  for (Block& b : blocks_) {
    for (Linear* l : {&b.query, &b.key, &b.value, &b.output, &b.query_key_value}) linear(*l);
    norm(b.query_norm);
    norm(b.key_norm);
    for (Linear* l : {&b.gate, &b.up, &b.gate_up, &b.down}) linear(*l);
    norm(b.attention_norm);
    norm(b.mlp_norm);
    norm(b.attention_post_norm);
    norm(b.mlp_post_norm);
  }
  norm(final_norm_);
  if (!spec_.learned_positions && !inverse_frequencies_.defined()) {
    inverse_frequencies_ = t_.empty(D_ / 2, DType::f32, Role::weights);
    if (t_.stack().rotary_keeps_original) original_frequencies_ = t_.empty(D_ / 2, DType::f32, Role::weights);
  }
  if (!spec_.tied_embeddings) linear(head_);
}

void Decoder::load() {
  visit_parameters([&](Tensor& tensor, int64_t count, bool) {
    tensor = t_.empty(count, setup_.weights, Role::weights);
    if (setup_.method == Method::full) Autograd::require_grad(tensor);
  });
}

void Decoder::adapt() {
  if (setup_.method != Method::lora) return;
  inputs_require_grad_ = true;
  const auto targeted = [&](const Linear& l) {
    const auto& targets = setup_.targets;
    if (targets == std::vector<std::string>{"all-linear"}) return true;
    return std::find(targets.begin(), targets.end(), l.name) != targets.end();
  };
  each_linear([&](Linear& l) {
    if (!targeted(l)) return;
    l.adapter.rank = setup_.rank;
    l.adapter.a = t_.empty(l.in * setup_.rank, setup_.weights, Role::adapters);
    l.adapter.b = t_.empty(l.out * setup_.rank, setup_.weights, Role::adapters);
  });
  const auto widen = [&](Tensor& tensor) {  // peft/tuners: autocast_adapter_dtype
    Tensor wide = t_.empty(tensor.count, DType::f32, Role::adapters);
    tensor = std::move(wide);
    Autograd::require_grad(tensor);
  };
  each_linear([&](Linear& l) {
    if (l.adapter.rank == 0) return;
    widen(l.adapter.a);
    widen(l.adapter.b);
  });
}

std::vector<Tensor*> Decoder::trained() {
  std::vector<Tensor*> found;
  if (setup_.method == Method::full) {
    visit_parameters([&](Tensor& tensor, int64_t, bool) { found.push_back(&tensor); });
    return found;
  }
  each_linear([&](Linear& l) {
    if (l.adapter.rank == 0) return;
    found.push_back(&l.adapter.a);
    found.push_back(&l.adapter.b);
  });
  return found;
}

std::vector<bool> Decoder::decays() {
  std::vector<bool> found;
  if (setup_.method == Method::full) {
    visit_parameters([&](Tensor&, int64_t, bool decays) { found.push_back(decays); });
  } else {
    found.assign(trained().size(), true);
  }
  return found;
}

}  // namespace snug::eager
