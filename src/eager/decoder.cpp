#include "eager/decoder.h"

#include <algorithm>
#include <map>
#include <utility>

#include "model/module_names.h"

namespace snug::eager {

Decoder::Decoder(Torch& torch, const ModelSpec& spec, const Setup& setup)
    : t_(torch), spec_(spec), setup_(setup), B_(setup.batch), T_(setup.seq_len), C_(spec.hidden_size), D_(spec.head_size) {
  make_blocks();
  make_tower();
}

void Decoder::make_blocks() {
  const int64_t queries = spec_.heads * D_, keys = spec_.kv_heads * D_, F = spec_.intermediate_size;
  const bool qkv = spec_.query_key_value_bias;
  const ModuleNames names = module_names(spec_);
  const auto linear = [](std::string_view path, int64_t in, int64_t out, bool biased) {
    Linear l;
    l.path = path, l.name = path.substr(path.rfind('.') + 1), l.in = in, l.out = out, l.biased = biased, l.present = true;
    return l;
  };
  const auto norm = [](Norm& n, std::string_view path, int64_t size) { n.path = path, n.size = size; };
  blocks_.resize(static_cast<size_t>(spec_.layers));
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Block& b = blocks_[i];
    b.local = i < spec_.local_layers.size() && spec_.local_layers[i];
    if (i < spec_.delta_net.layers.size() && spec_.delta_net.layers[i]) {
      make_delta_net(b);
    } else if (spec_.fused_projections) {
      b.query_key_value = linear(names.query_key_value, C_, queries + 2 * keys, qkv);
    } else {
      b.query = linear(names.query, C_, spec_.gated_attention ? 2 * queries : queries, qkv);
      b.key = linear(names.key, C_, keys, qkv);
      b.value = linear(names.value, C_, keys, qkv);
    }
    const bool plain = spec_.experts.count == 0;
    if (plain && spec_.fused_gate_up) b.gate_up = linear(names.gate_up, C_, 2 * F, spec_.mlp_bias);
    if (plain && spec_.gated_mlp && !spec_.fused_gate_up) b.gate = linear(names.gate, C_, F, spec_.mlp_bias);
    if (plain && !spec_.fused_gate_up) b.up = linear(names.up, C_, F, spec_.mlp_bias);
    const bool attends = !b.delta.output.present;
    if (attends) b.output = linear(names.output, queries, C_, spec_.output_bias);
    if (plain) b.down = linear(names.down, F, C_, spec_.mlp_bias);
    if (attends && spec_.query_key_norms) norm(b.query_norm, names.query_norm, spec_.wide_query_key_norms ? queries : D_);
    if (attends && spec_.query_key_norms) norm(b.key_norm, names.key_norm, spec_.wide_query_key_norms ? keys : D_);
    if (spec_.pre_norms) norm(b.attention_norm, names.attention_norm, C_);
    if (spec_.pre_norms && spec_.parallel == ParallelBlock::none) norm(b.mlp_norm, names.mlp_norm, C_);
    if (spec_.post_norms) norm(b.attention_post_norm, names.attention_post_norm, C_);
    if (spec_.post_norms) norm(b.mlp_post_norm, names.mlp_post_norm, C_);
  }
  norm(final_norm_, names.final_norm, C_);
  head_ = linear(names.head, C_, spec_.vocab_size, spec_.head_bias);
}

// --- parameters ---

// In their order of registration, all that a block of any kind may have.
std::vector<Linear*> Decoder::linears_of(Block& b) {
  std::vector<Linear*> all = linears_of(b.delta);
  for (Linear* l : {&b.query, &b.key, &b.value, &b.output, &b.query_key_value, &b.gate, &b.gate_up, &b.up, &b.down})
    all.push_back(l);
  return all;
}

void Decoder::each_linear(const std::function<void(Linear&)>& visit) {
  const bool fused_first = is_in_order_of_gpt2();
  for (Block& b : blocks_) {
    if (fused_first) visit(b.query_key_value);
    for (Linear* l : linears_of(b))
      if (l->present && !(fused_first && l == &b.query_key_value)) visit(*l);
  }
}

void Decoder::visit_linear(Linear& l, const Visit& visit) {
  if (!l.present) return;
  visit(l.weight, l.in * l.out, spec_.input_features_first ? l.out : l.in, true);
  if (l.biased) visit(l.bias, l.out, 0, false);
}

void Decoder::visit_norm(Norm& n, const Visit& visit) {
  if (n.size == 0) return;
  // of RMS norms the list names Llama's alone
  const bool decays = t_.stack().norms_are_told_by_class && spec_.norm == NormKind::rms && spec_.family != "llama";
  visit(n.weight, n.size, 0, decays);
  if (spec_.norm == NormKind::layer) visit(n.bias, n.size, 0, false);
}

void Decoder::visit_block(Block& b, const Visit& visit) {
  const bool as_gpt2 = is_in_order_of_gpt2();
  if (as_gpt2) visit_norm(b.attention_norm, visit);
  if (as_gpt2) visit_linear(b.query_key_value, visit);
  visit_delta_net(b, visit);
  for (Linear* l : {&b.query, &b.key, &b.value, &b.output}) visit_linear(*l, visit);
  if (is_gpt2() && t_.stack().masks_of_gpt2_are_kept && !b.causal.defined()) {
    b.causal = t_.empty(spec_.max_position * spec_.max_position, DType::u8, Role::weights);
    b.masked = t_.empty(1, DType::f32, Role::weights);
  }
  if (!as_gpt2) visit_linear(b.query_key_value, visit);
  visit_norm(b.query_norm, visit);
  visit_norm(b.key_norm, visit);
  if (as_gpt2) visit_norm(b.mlp_norm, visit);
  if (is_qwen1()) visit_linear(b.up, visit);
  for (Linear* l : {&b.gate, &b.up, &b.gate_up, &b.down})
    if (!(is_qwen1() && l == &b.up)) visit_linear(*l, visit);
  visit_experts(b, visit);
  if (as_gpt2) return;
  visit_norm(b.attention_norm, visit);
  visit_norm(b.mlp_norm, visit);
  visit_norm(b.attention_post_norm, visit);
  visit_norm(b.mlp_post_norm, visit);
}

// Qwen's block registers its router after the experts. Shares are cut between experts: what FSDP 2 takes for a row is one.
void Decoder::visit_experts(Block& b, const Visit& visit) {
  const int64_t E = spec_.experts.count, F = spec_.experts.intermediate_size;
  if (E == 0) return;
  const bool router_last = spec_.family == "qwen3_moe";
  if (!router_last) visit(b.router, E * C_, C_, true);
  visit(b.gate_up_experts, E * 2 * F * C_, 2 * F * C_, true);
  visit(b.down_experts, E * C_ * F, C_ * F, true);
  if (router_last) visit(b.router, E * C_, C_, true);
}

void Decoder::visit_parameters(const Visit& visit) {
  visit(embedding_, spec_.vocab_size * C_, C_, true);
  if (spec_.learned_positions) visit(position_embedding_, (spec_.max_position + spec_.position_offset) * C_, C_, true);
  for (Block& b : blocks_) visit_block(b, visit);
  visit_norm(final_norm_, visit);
  make_frequencies();
  if (!spec_.tied_embeddings) visit_linear(head_, visit);
}

// On the device, or, where FSDP or DeepSpeed will share it out, on the host.
Tensor Decoder::placed(int64_t count, DType dtype, Role role) {
  const Sharding sharding = setup_.ranks.sharding;
  // which is done on the device; peft puts adapters where the weights say that they are
  const bool stays = setup_.quantization != Quantization::none || (role == Role::adapters && setup_.ranks.loads_in_parts);
  if (!stays && sharding != Sharding::none && sharding != Sharding::ddp) return {{}, count, dtype, false, nullptr, 0};
  return t_.empty(count, dtype, role);
}

void Decoder::make_frequencies() {
  if (spec_.learned_positions || inverse_frequencies_.defined()) return;
  inverse_frequencies_ = t_.empty(spec_.rotated() / 2, DType::f32, Role::weights);
  if (t_.stack().rotary_keeps_original) original_frequencies_ = t_.empty(spec_.rotated() / 2, DType::f32, Role::weights);
}

void Decoder::load() {
  if (setup_.quantization != Quantization::none) return load_quantized();
  const auto place = [&](Tensor& tensor, int64_t count, int64_t, bool) {
    tensor = placed(count, setup_.weights, Role::weights);
  };
  visit_tower(place);
  visit_parameters([&](Tensor& tensor, int64_t count, int64_t columns, bool decays) {
    place(tensor, count, columns, decays);
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
  each_adaptable_linear([&](Linear& l) {
    if (!targeted(l)) return;
    l.adapter.rank = setup_.rank;
    const bool quantized = l.four_bit || l.eight_bit || l.gptq;
    const DType dtype = quantized && t_.stack().adapters_of_codes_are_wide ? DType::f32 : setup_.weights;
    l.adapter.a = placed(l.in * setup_.rank, dtype, Role::adapters);
    l.adapter.b = placed(l.out * setup_.rank, dtype, Role::adapters);
    if (setup_.dora) start_magnitude(l);
  });
  adapt_experts();
  const auto widen = [&](Tensor& tensor) {  // peft/tuners: autocast_adapter_dtype
    if (tensor.dtype != DType::f32 && !t_.stack().adapters_follow_weights)
      tensor = placed(tensor.count, DType::f32, Role::adapters);
    Autograd::require_grad(tensor);
  };
  each_adaptable_linear([&](Linear& l) {
    if (l.adapter.rank == 0) return;
    widen(l.adapter.a);
    widen(l.adapter.b);
    if (setup_.dora) widen(l.adapter.magnitude);
  });
  for (Block& b : blocks_)
    each_expert_adapter(b, [&](Adapter& adapter, int64_t, int64_t) {
      widen(adapter.a);
      widen(adapter.b);
    });
  if (setup_.narrow_adapters) narrow_adapters();
  if (setup_.saves_embedding) save_module(embedding_);
  if (setup_.saves_head) save_module(head_.weight);
  if (setup_.preparation != Preparation::trl) return;
  for (Tensor* tensor : {&embedding_, &head_.weight})  // trl: peft_module_casting_to_bf16
    if (tensor->defined() && tensor->dtype != DType::bf16) *tensor = t_.empty(tensor->count, DType::bf16, Role::weights);
}

// trl's sft_trainer.py: param.data = param.data.to(torch.bfloat16)
void Decoder::narrow_adapters() {
  const auto narrow = [&](Tensor& tensor) {
    if (tensor.dtype == DType::bf16) return;
    tensor = t_.empty(tensor.count, DType::bf16, Role::adapters);
    Autograd::require_grad(tensor);
  };
  each_adaptable_linear([&](Linear& l) {
    if (l.adapter.rank == 0) return;
    narrow(l.adapter.a);
    narrow(l.adapter.b);
    if (setup_.dora && setup_.narrow_magnitudes) narrow(l.adapter.magnitude);
  });
}

// peft/utils/other.py, ModulesToSaveWrapper
void Decoder::save_module(Tensor& weight) {
  originals_.push_back(weight);
  weight = t_.empty(weight.count, weight.dtype, Role::adapters);
  Autograd::require_grad(weight);
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
                  holds(b.query_norm) || holds(b.key_norm) || holds(b.delta.norm);
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
  if (setup_.saves_embedding) found.push_back({&embedding_, C_, true, true});
  each_linear([&](Linear& l) {
    if (l.adapter.rank == 0) return;
    found.push_back({&l.adapter.a, l.in, true});
    found.push_back({&l.adapter.b, l.adapter.rank, true});
    if (l.adapter.magnitude.defined()) found.push_back({&l.adapter.magnitude, 0, true});
  });
  for (Block& b : blocks_)
    each_expert_adapter(b, [&](Adapter& adapter, int64_t in, int64_t) {
      found.push_back({&adapter.a, in, true});
      found.push_back({&adapter.b, adapter.rank, true});
    });
  if (setup_.saves_head) found.push_back({&head_.weight, C_, true});
  return found;
}

std::vector<Tensor*> Decoder::parameters() {
  std::map<const Tensor*, Adapter*> adapters;  // by the tensor that they follow
  each_linear([&](Linear& l) { adapters[l.biased ? &l.bias : &l.weight] = &l.adapter; });
  std::vector<Tensor*> found;
  visit_parameters([&](Tensor& tensor, int64_t, int64_t, bool) {
    found.push_back(&tensor);
    const auto followed = adapters.find(&tensor);
    if (followed == adapters.end()) return;
    for (Tensor* part : {&followed->second->a, &followed->second->b, &followed->second->magnitude})
      if (part->defined()) found.push_back(part);
  });
  return found;
}

std::vector<FlatUnit> Decoder::flat_units() {
  std::vector<FlatUnit> units;
  for (Block& b : blocks_) {
    for (Linear* l : linears_of(b)) {
      if (l->adapter.rank == 0) continue;
      units.push_back({&l->adapter.a, {&l->adapter.a}, 0, {}, true});
      units.push_back({&l->adapter.b, {&l->adapter.b}, 0, {}, true});
    }
    FlatUnit block;
    block.key = &b;
    visit_block(b, [&](Tensor& tensor, int64_t, int64_t, bool) {
      block.parameters.push_back(&tensor);
      if (is_norm(tensor) && &tensor != &b.query_norm.weight && &tensor != &b.key_norm.weight) ++block.moves_first;
    });
    units.push_back(std::move(block));
  }
  FlatUnit root;
  root.key = this;
  root.parameters = {&embedding_};
  root.moves_first = spec_.tied_embeddings ? 0 : 1;
  for (const Tensor* buffer : {&inverse_frequencies_, &original_frequencies_})
    if (buffer->defined()) root.buffers.push_back(buffer);
  const auto add = [&](Tensor& tensor, int64_t, int64_t, bool) { root.parameters.push_back(&tensor); };
  visit_norm(final_norm_, add);
  if (!spec_.tied_embeddings) visit_linear(head_, add);
  units.push_back(std::move(root));
  return units;
}

std::vector<UnitParameters> Decoder::units() {
  const bool tied = spec_.tied_embeddings;
  std::map<const Tensor*, Linear*> adapted;  // by the tensor that adapters follow
  each_linear([&](Linear& l) {
    if (l.adapter.rank > 0) adapted[l.biased ? &l.bias : &l.weight] = &l;
  });
  std::vector<UnitParameters> units(tied ? 0 : 1);
  const Visit add = [&](Tensor& tensor, int64_t count, int64_t columns, bool) {
    const bool codes = tensor.defined() && tensor.count != count;
    // accelerate leaves codes alone that are no floating-point numbers (fsdp2_prepare_model, incompatible_params4bit)
    if (!codes || tensor.dtype != DType::u8)
      units.back().push_back({&tensor, codes ? tensor.count : columns > 0 ? count / columns : count});
    const auto found = adapted.find(&tensor);
    if (found == adapted.end()) return;
    Adapter& adapter = found->second->adapter;
    units.back().push_back({&adapter.a, adapter.rank});
    units.back().push_back({&adapter.b, found->second->out});
    if (adapter.magnitude.defined()) units.back().push_back({&adapter.magnitude, found->second->out});
  };
  if (!tied) add(embedding_, spec_.vocab_size * C_, C_, true);
  for (Block& b : blocks_) {
    units.emplace_back();
    visit_block(b, add);
  }
  units.emplace_back();
  visit_norm(final_norm_, add);
  if (tied) {
    add(embedding_, spec_.vocab_size * C_, C_, true);
  } else {
    visit_linear(head_, add);
  }
  return units;
}

}  // namespace snug::eager
