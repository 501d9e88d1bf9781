#include "eager/torchtune.h"

#include <algorithm>
#include <utility>

namespace snug::eager {

namespace {

constexpr int64_t kChunks = 8;  // CEWithChunkedOutputLoss, num_output_chunks

}  // namespace

TorchTune::TorchTune(Torch& torch, const ModelSpec& spec, const Setup& setup)
    : t_(torch),
      spec_(spec),
      setup_(setup),
      B_(setup.batch),
      T_(setup.seq_len),
      C_(spec.hidden_size),
      D_(spec.head_size),
      H_(spec.heads),
      K_(spec.kv_heads),
      layers_(static_cast<size_t>(spec.layers)) {
  const int64_t F = spec.intermediate_size;
  const bool biased = spec.query_key_value_bias;
  for (Layer& l : layers_) {
    l.query = linear(C_, H_ * D_, biased, "q_proj");
    l.key = linear(C_, K_ * D_, biased, "k_proj");
    l.value = linear(C_, K_ * D_, biased, "v_proj");
    l.output = linear(H_ * D_, C_, false, "o_proj");
    l.gate = linear(C_, F, false, "gate_proj");
    l.down = linear(F, C_, false, "down_proj");
    l.up = linear(C_, F, false, "up_proj");
  }
  head_ = linear(C_, spec.vocab_size, false, "lm_head");
}

bool TorchTune::adapts(const char* name) const {
  const auto& targets = setup_.targets;
  const bool all = targets == std::vector<std::string>{"all-linear"} && name != std::string("lm_head");
  return setup_.method == Method::lora && (all || std::ranges::find(targets, name) != targets.end());
}

TorchTune::Linear TorchTune::linear(int64_t in, int64_t out, bool biased, const char* name) const {
  Linear l;
  l.in = in, l.out = out, l.biased = biased, l.rank = adapts(name) ? setup_.rank : 0;
  return l;
}

void TorchTune::place(Tensor& weight, int64_t count) {
  weight = t_.empty(count, setup_.weights, Role::weights);
  if (setup_.method == Method::full) Autograd::require_grad(weight);
}

void TorchTune::place(Linear& l) {
  place(l.weight, l.in * l.out);
  if (l.biased) place(l.bias, l.out);
  if (l.rank == 0) return;
  l.a = t_.empty(l.rank * l.in, setup_.weights, Role::adapters);
  l.b = t_.empty(l.rank * l.out, setup_.weights, Role::adapters);
  Autograd::require_grad(l.a);
  Autograd::require_grad(l.b);
}

void TorchTune::load() {
  place(embedding_, spec_.vocab_size * C_);
  const auto angles = [&] { return t_.empty(spec_.max_position * D_, DType::f32, Role::weights); };
  angles_ = angles();
  for (Layer& l : layers_) {
    // models/llama2/_component_builders.py, and Mistral's and Qwen 2's: with adapters each layer has a table of its own
    const bool own = setup_.method == Method::lora && spec_.rope.scaling != RopeScaling::llama3 && &l != layers_.data();
    l.angles = own ? angles() : angles_;
    for (Linear* part : {&l.query, &l.key, &l.value, &l.output, &l.gate, &l.down, &l.up}) place(*part);
    place(l.attention_norm, C_);
    place(l.mlp_norm, C_);
  }
  place(final_norm_, C_);
  if (!spec_.tied_embeddings) place(head_);
}

std::vector<Trained> TorchTune::trained() {
  std::vector<Trained> found;
  const bool full = setup_.method == Method::full;
  const auto add = [&](Linear& l) {
    if (full && l.weight.defined()) found.push_back({&l.weight, l.in, true});
    if (full && l.bias.defined()) found.push_back({&l.bias, 0, true});
    if (l.rank == 0) return;
    found.push_back({&l.a, l.in, true});
    found.push_back({&l.b, l.rank, true});
  };
  if (full) found.push_back({&embedding_, C_, true});
  for (Layer& l : layers_) {
    for (Linear* part : {&l.query, &l.key, &l.value, &l.output, &l.gate, &l.down, &l.up}) add(*part);
    if (full) found.push_back({&l.attention_norm, 0, true});
    if (full) found.push_back({&l.mlp_norm, 0, true});
  }
  if (full) found.push_back({&final_norm_, 0, true});
  add(head_);
  return found;
}

// --- the forward pass; locals are declared from the last to the first, so that they go from the first to the last ---

// modules/peft/lora.py, LoRALinear.forward
Tensor TorchTune::apply(const Tensor& x, Linear& l) {
  Tensor low;
  Tensor out = t_.linear(x, l.weight, l.bias, l.in, l.out);
  if (l.rank == 0) return out;
  {
    const Tensor dropped = t_.dropout(x, setup_.dropout);
    low = t_.linear(dropped, l.a, {}, l.in, l.rank);
  }
  {
    const Tensor high = t_.linear(low, l.b, {}, l.rank, l.out);
    low = t_.scale(high);
  }
  return t_.add(out, low);
}

// modules/rms_norm.py; ATen/native/layer_norm.cpp, rms_norm of rows and a weight of different types
Tensor TorchTune::norm(const Tensor& x, const Tensor& weight) {
  const Tensor wide = t_.to(x, DType::f32);
  Tensor normed;
  {
    Tensor root;
    {
      const Tensor square = t_.square(wide);
      root = t_.rsqrt(t_.mean(square, x.count / C_));
    }
    normed = t_.mul(wide, root, true);
  }
  normed = t_.mul(normed, weight);
  return t_.to(normed, x.dtype);
}

// modules/position_embeddings.py: pairs of neighbours turn, in fp32
Tensor TorchTune::rotated(const Tensor& x) {
  const Tensor wide = t_.to(x, DType::f32);
  const auto half = [&] { return t_.slice(wide, wide.count / 2); };
  Tensor angles = angles_.detached();
  angles.count = T_ * D_ / 2;
  const auto turned = [&] {
    const Tensor one = t_.mul(half(), angles), other = t_.mul(half(), angles);
    return t_.add(one, other);
  };
  Tensor both;
  {
    const Tensor first = turned(), second = turned();
    both = t_.cat({first, second});
  }
  return t_.to(both, x.dtype);
}

// expand and flatten, where heads share keys and values
Tensor TorchTune::shared(const Tensor& x) { return H_ == K_ ? x : t_.repeat(x, H_ / K_); }

// modules/attention.py, MultiHeadAttention.forward
Tensor TorchTune::attention(const Tensor& x, Layer& l) {
  Tensor output, v, k, q;
  q = t_.transposed_view(apply(x, l.query));
  q = rotated(q);
  k = t_.transposed_view(apply(x, l.key));
  v = apply(x, l.value);
  if (H_ != K_) v = t_.transposed_view(v);
  k = rotated(k);
  k = shared(k);
  v = shared(v);
  AttentionShape shape{B_, T_, H_, D_};
  shape.random_state = t_.stack().flash_makes_random_state;
  output = is_half(q.dtype) ? flash_attention(t_, q, k, v, shape) : efficient_attention(t_, q, k, v, {}, shape);
  return apply(output, l.output);
}

// modules/feed_forward.py
Tensor TorchTune::mlp(const Tensor& x, Layer& l) {
  Tensor h = apply(x, l.gate);
  h = t_.keeps_input(h);
  {
    const Tensor up = apply(x, l.up);
    h = t_.mul(h, up);
  }
  return apply(h, l.down);
}

// modules/transformer.py, TransformerSelfAttentionLayer.forward
Tensor TorchTune::layer(const Tensor& x, Layer& l) {
  Tensor made, attended, h;
  h = norm(x, l.attention_norm);
  attended = attention(h, l);
  h = t_.add(attended, x);
  {
    const Tensor normed = norm(h, l.mlp_norm);
    made = mlp(normed, l);
  }
  return t_.add(h, made);
}

// modules/transformer.py, TransformerDecoder.forward and chunked_output
Tensors TorchTune::forward() {
  Tensor h = t_.embedding(embedding_, B_ * T_, C_);
  for (Layer& l : layers_) {
    const auto run = [this, &l](const Tensor& x) { return layer(x, l); };
    h = setup_.checkpointing == Checkpointing::none ? run(h) : t_.checkpoint_non_reentrant(h, run);
  }
  const Tensor last = norm(h, final_norm_);
  std::vector<int64_t> counts;
  const int64_t length = (T_ + kChunks - 1) / kChunks;
  for (int64_t begin = 0; begin < T_; begin += length) counts.push_back(B_ * std::min(length, T_ - begin) * C_);
  Tensors logits;
  for (const Tensor& part : t_.split(last, counts)) {
    // rows of several sequences do not follow each other; ATen/native/LinearAlgebra.cpp, should_fold: copied for a weight
    // that is trained, multiplied as batches otherwise
    const bool copies = B_ > 1 && setup_.method == Method::full;
    const Tensor rows = copies ? t_.clone(part) : part;
    logits.push_back(spec_.tied_embeddings ? t_.linear(rows, embedding_, {}, C_, spec_.vocab_size) : apply(rows, head_));
  }
  return logits;
}

// modules/loss/ce_chunked_output_loss.py
Tensor TorchTune::loss(const Tensors& logits) {
  const Tensor differ = t_.empty(1, DType::i64);
  Tensor total;
  for (const Tensor& part : logits) {
    const Tensor labels = t_.empty(part.count / spec_.vocab_size, DType::i64);
    const Tensor wide = t_.to(part, DType::f32), logarithms = t_.keeps_output(wide);
    Tensor sum = t_.empty(1, DType::f32), weight = t_.empty(1, DType::f32);
    t_.record({logarithms}, {&sum}, {logarithms, labels, weight},
              [this](const Node&, const Tensors& saved, Tensors&) -> Tensors { return {t_.empty_like(saved[0])}; });
    total = total.defined() ? t_.add_in_place(total, sum) : t_.add_number(sum);
  }
  return t_.scale(total);
}

// --- the loop ---

void TorchTune::micro_step() {
  Device& device = t_.device();
  ids_ = t_.empty(B_ * T_, DType::i64, Role::batch);
  labels_ = t_.empty(B_ * T_, DType::i64, Role::batch);
  device.enter(Phase::forward);
  {
    const Tensors logits = forward();
    const Tensor shifted = t_.empty(B_ * T_, DType::i64);
    loss_ = t_.scale(loss(logits));
  }
  running_loss_ = t_.add_number(loss_);
  device.enter(Phase::backward);
  const Tensor one = t_.empty(1, DType::f32);
  t_.backward(loss_, one);
  device.enter(Phase::between);
}

void TorchTune::train(int64_t steps) {
  Device& device = t_.device();
  const std::vector<Trained> parameters = trained();
  optimizer_ = std::make_unique<Optimizers>(t_, setup_, parameters);
  device.enter(Phase::between);
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t i = 0; i < setup_.accumulation; ++i) micro_step();
    device.enter(Phase::optimizer);
    optimizer_->step();
    device.enter(Phase::between);
    for (const Trained& parameter : parameters) parameter.tensor->node->gradient = {};
  }
}

}  // namespace snug::eager
