// LitGPT's modules: what they are made of, in the order in which they are made, and what of them is trained.

#include "eager/litgpt.h"

#include <algorithm>

namespace snug::eager {

LitGpt::LitGpt(Torch& torch, const ModelSpec& spec, const Setup& setup)
    : t_(torch),
      spec_(spec),
      setup_(setup),
      B_(setup.batch),
      T_(setup.seq_len),
      C_(spec.hidden_size),
      D_(spec.head_size),
      H_(spec.heads),
      K_(spec.kv_heads) {
  head_ = linear(C_, spec.vocab_size, spec.head_bias, adapts({"lm_head"}));
  blocks_.resize(static_cast<size_t>(spec.layers));
  for (size_t i = 0; i < blocks_.size(); ++i) make_block(blocks_[i], i);
}

// Whether a target has one of these names, which are transformers'.
bool LitGpt::adapts(std::initializer_list<const char*> names) const {
  if (setup_.method == Method::full) return false;
  const auto& targets = setup_.targets;
  if (targets == std::vector<std::string>{"all-linear"}) return *names.begin() != std::string("lm_head");
  return std::ranges::any_of(names, [&](const char* name) { return std::ranges::find(targets, name) != targets.end(); });
}

LitGpt::Linear LitGpt::linear(int64_t in, int64_t out, bool biased, bool adapted) const {
  Linear l;
  l.in = in, l.out = out, l.biased = biased, l.rank = adapted ? setup_.rank : 0;
  return l;
}

void LitGpt::make_block(Block& b, size_t number) {
  const int64_t F = spec_.intermediate_size, queries = H_ * D_, keys = K_ * D_;
  const auto adapts_part = [&](const char* name) { return adapts({name, "qkv_proj", "query_key_value", "c_attn"}); };
  b.qkv = linear(C_, queries + 2 * keys, spec_.query_key_value_bias, false);
  if (adapts_part("q_proj")) b.qkv.parts.push_back(queries);
  if (adapts_part("k_proj")) b.qkv.parts.push_back(keys);
  if (adapts_part("v_proj")) b.qkv.parts.push_back(keys);
  if (!b.qkv.parts.empty()) b.qkv.rank = setup_.rank;
  b.output = linear(queries, C_, spec_.output_bias, adapts({"o_proj", "dense"}));
  const bool mlp = adapts({"gate_proj", "up_proj", "down_proj", "gate_up_proj", "fc1", "fc2", "dense_h_to_4h"});
  b.fc_1 = linear(C_, F, spec_.mlp_bias, mlp);
  if (spec_.gated_mlp) b.fc_2 = linear(C_, F, spec_.mlp_bias, mlp);
  b.down = linear(F, C_, spec_.mlp_bias, mlp);
  // config.py, sliding_window_layer_placing
  const bool everywhere = (spec_.family == "mistral" || spec_.family == "phi3") && t_.stack().litgpt_windows_mistral;
  b.windowed = spec_.sliding_window > 0 && (everywhere || (spec_.family == "gemma2" && number % 2 == 0));
}

// --- onto the device ---

void LitGpt::place(Linear& l) {
  if (l.out == 0) return;
  l.weight = t_.empty(l.in * l.out, setup_.weights, Role::weights);
  if (l.biased) l.bias = t_.empty(l.out, setup_.weights, Role::weights);
  if (setup_.quantization == Quantization::four_bit) quantize(l);
  if (l.rank > 0) {
    const int64_t parts = std::max<int64_t>(1, static_cast<int64_t>(l.parts.size()));
    int64_t rows = 0;
    for (const int64_t part : l.parts) rows += part;
    l.a = t_.empty(parts * l.rank * l.in, setup_.weights, Role::adapters);
    l.b = t_.empty((rows > 0 ? rows : l.out) * l.rank, setup_.weights, Role::adapters);
    Autograd::require_grad(l.a);
    Autograd::require_grad(l.b);
  }
  if (setup_.method != Method::full) return;
  Autograd::require_grad(l.weight);
  if (l.biased) Autograd::require_grad(l.bias);
}

void LitGpt::place(Norm& n) {
  n.weight = t_.empty(C_, setup_.weights, Role::weights);
  if (spec_.norm == NormKind::layer) n.bias = t_.empty(C_, setup_.weights, Role::weights);
  if (setup_.method != Method::full) return;
  Autograd::require_grad(n.weight);
  if (n.bias.defined()) Autograd::require_grad(n.bias);
}

void LitGpt::place(Block& b) {
  place(b.norm_1);
  place(b.qkv);
  place(b.output);
  if (spec_.post_norms) place(b.post_attention);
  if (spec_.parallel != ParallelBlock::one_norm) place(b.norm_2);
  place(b.fc_1);
  place(b.fc_2);
  place(b.down);
  if (spec_.post_norms) place(b.post_mlp);
}

// lightning/fabric/plugins/precision/bitsandbytes.py, _Linear4bit.quantize: from fp16
void LitGpt::quantize(Linear& l) {
  const int64_t count = l.in * l.out, scales = (count + 63) / 64;
  const Tensor half = t_.to(l.weight, DType::f16);
  l.quantized = true;
  l.scales = t_.empty(scales, DType::f32, Role::weights);
  Tensor codes = t_.empty((count + 1) / 2, DType::u8, Role::weights);
  l.code = t_.empty(16, DType::f32, Role::weights);
  if (setup_.double_quant) {
    l.offset = t_.empty(1, DType::f32, Role::weights);
    if (!scales_code_.defined()) scales_code_ = t_.empty(256, DType::f32, Role::weights);
    l.scale_scales = t_.empty((scales + 255) / 256, DType::f32, Role::weights);
    l.scales = t_.empty(scales, DType::u8, Role::weights);
  }
  l.weight = std::move(codes);
}

void LitGpt::load() {
  place(head_);
  embedding_ = t_.empty(spec_.vocab_size * C_, setup_.weights, Role::weights);
  if (setup_.method == Method::full) Autograd::require_grad(embedding_);
  for (Block& b : blocks_) place(b);
  place(final_norm_);
  // HalfPrecision.convert_module narrows them with the module
  const DType dtype = setup_.quantization == Quantization::none ? setup_.weights : DType::f32;
  cos_ = t_.empty(spec_.max_position * spec_.rotated(), dtype, Role::weights);
  sin_ = t_.empty(spec_.max_position * spec_.rotated(), dtype, Role::weights);
  stabilize_embedding();
}

// finetune/lora.py, main: the table once more, and a norm; the first one stays with the optimizer
void LitGpt::stabilize_embedding() {
  if (setup_.quantization == Quantization::none || !t_.stack().litgpt_stable_embedding) return;
  first_embedding_ = embedding_;
  embedding_ = t_.empty(spec_.vocab_size * C_, setup_.weights, Role::weights);
  embedding_norm_.weight = t_.empty(C_, setup_.weights, Role::weights);
  embedding_norm_.bias = t_.empty(C_, setup_.weights, Role::weights);
  for (Tensor* tensor : {&embedding_, &embedding_norm_.weight, &embedding_norm_.bias}) Autograd::require_grad(*tensor);
}

// model.py, GPT.max_seq_length and build_rope_cache
void LitGpt::set_most_tokens(int64_t tokens) {
  if (tokens == spec_.max_position) return;
  const Tensor angles = t_.empty(tokens * spec_.rotated(), DType::f32);
  Tensor cos = t_.empty(angles.count, DType::f32, Role::weights), sin = t_.empty(angles.count, DType::f32, Role::weights);
  cos_ = std::move(cos);
  sin_ = std::move(sin);
}

// --- what is trained ---

void LitGpt::train(Linear& l, std::vector<Trained>& into) {
  if (l.rank > 0) {
    into.push_back({&l.a, l.in, true});
    into.push_back({&l.b, l.rank, true});
  }
  if (setup_.method != Method::full || l.out == 0) return;
  into.push_back({&l.weight, l.in, true});
  if (l.biased) into.push_back({&l.bias, 0, true});
}

void LitGpt::train(Norm& n, std::vector<Trained>& into) {
  if (setup_.method != Method::full || !n.weight.defined()) return;
  into.push_back({&n.weight, 0, true});
  if (n.bias.defined()) into.push_back({&n.bias, 0, true});
}

std::vector<Trained> LitGpt::trained() {
  std::vector<Trained> found;
  train(head_, found);
  if (setup_.method == Method::full) found.push_back({&embedding_, C_, true});
  for (Block& b : blocks_) {
    train(b.norm_1, found);
    train(b.qkv, found);
    train(b.output, found);
    train(b.post_attention, found);
    train(b.norm_2, found);
    train(b.fc_1, found);
    train(b.fc_2, found);
    train(b.down, found);
    train(b.post_mlp, found);
  }
  train(final_norm_, found);
  return found;
}

}  // namespace snug::eager
