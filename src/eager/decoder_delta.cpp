// Qwen 3.5's layers without attention: a gated delta rule over chunks of tokens, as transformers writes it out in PyTorch's
// own ops (modeling_qwen3_5.py; what it does where flash-linear-attention is not installed).

#include <utility>

#include "eager/decoder.h"

namespace snug::eager {

namespace {

constexpr int64_t kDeltaChunk = 64;  // tokens

int64_t in_chunks(int64_t tokens) { return (tokens + kDeltaChunk - 1) / kDeltaChunk * kDeltaChunk; }

}  // namespace

void Decoder::make_delta_net(Block& b) {
  const DeltaNet& of = spec_.delta_net;
  const int64_t keys = of.key_heads * of.key_size, values = of.value_heads * of.value_size;
  DeltaLayer& n = b.delta;
  const auto linear = [](Linear& l, const char* name, int64_t in, int64_t out) {
    l.name = name, l.path = std::string("linear_attn.") + name, l.in = in, l.out = out, l.present = true;
  };
  linear(n.output, "out_proj", values, C_);
  linear(n.mixed, "in_proj_qkv", C_, 2 * keys + values);
  linear(n.gate, "in_proj_z", C_, values);
  linear(n.beta, "in_proj_b", C_, of.value_heads);
  linear(n.decay, "in_proj_a", C_, of.value_heads);
  n.norm.path = "linear_attn.norm", n.norm.size = of.value_size;
}

// Parameters of a module come before those of the modules in it.
void Decoder::visit_delta_net(Block& b, const Visit& visit) {
  DeltaLayer& n = b.delta;
  if (!n.output.present) return;
  const int64_t heads = spec_.delta_net.value_heads, kernel = spec_.delta_net.kernel;
  visit(n.step_bias, heads, 0, false);
  visit(n.decay_log, heads, 0, true);
  visit(n.kernel, n.mixed.out * kernel, kernel, true);
  visit_norm(n.norm, visit);
  for (Linear* l : linears_of(n)) visit_linear(*l, visit);
}

// Qwen3_5TextRotaryEmbedding.forward: positions in three directions, which are one of text
void Decoder::hybrid_angles(Positions& p) {
  const int64_t half = spec_.rotated() / 2 * B_ * T_;
  Tensor angles;
  {
    const Tensor indices = t_.empty(3 * B_ * T_, DType::f32);
    angles = t_.empty(3 * half, DType::f32);
  }
  Tensor cos = t_.scale(angles);
  cos = t_.scale(cos);
  Tensor sin = t_.scale(angles);
  sin = t_.scale(sin);
  sin = t_.empty(2 * half, DType::f32);
  cos = t_.empty(2 * half, DType::f32);
  p.cos = t_.to(cos, embedding_.dtype);
  p.sin = t_.to(sin, embedding_.dtype);
}

// Qwen3_5Attention.forward
Tensor Decoder::gated_attention(const Tensor& x, Block& b, const Positions& where) {
  const int64_t count = B_ * T_ * spec_.heads * D_;
  Tensor query, gate;
  {
    const Tensors parts = t_.split(apply(x, b.query), {count, count});
    query = parts[0];
    gate = t_.clone(parts[1]);
  }
  query = norm(query, b.query_norm);
  Tensor key = t_.transposed_view(apply(x, b.key));
  key = norm(key, b.key_norm);
  Tensor value = apply(x, b.value);
  if (value_gradient_is_copied(where)) value = t_.transposed_view(value);
  return attended(query, key, std::move(value), b, where, gate);
}

// Qwen3_5GatedDeltaNet.forward
Tensor Decoder::delta_attention(const Tensor& input, Block& b, const Positions& where) {
  DeltaLayer& n = b.delta;
  const DeltaNet& of = spec_.delta_net;
  const int64_t keys = B_ * T_ * of.key_heads * of.key_size, values = B_ * T_ * of.value_heads * of.value_size;
  const Tensor x = where.padding.defined() ? t_.mul(input, where.padding, true) : input;
  const bool fused = !t_.stack().fla.empty();  // whose gradients lie as what they are of
  Tensor mixed = t_.transposed_view(apply(x, n.mixed));
  const auto turned = [&](const Tensor& y) { return fused ? y : t_.transposed_view(y); };
  const Tensor z = apply(x, n.gate), step = turned(apply(x, n.beta)), rate = turned(apply(x, n.decay));
  mixed = convolved(mixed, n);
  Tensors parts = t_.split(mixed, {keys, keys, values});
  for (Tensor& part : parts)  // gradients of heads that are repeated are sums, and lie as they do
    if (!fused && (&part == &parts[2] || of.key_heads == of.value_heads)) part = t_.transposed_view(part);
  const Tensor beta = t_.keeps_output(step);
  Tensor decay;
  {
    Tensor base = t_.keeps_output(t_.to(n.decay_log, DType::f32));
    base = t_.neg(base);
    Tensor steps;
    {
      const Tensor sum = t_.add(t_.to(rate, DType::f32), n.step_bias);
      steps = t_.keeps_input(sum);  // softplus
    }
    decay = t_.mul(base, steps);
  }
  const DeltaHeads heads{parts[0], parts[1], parts[2], decay, beta};
  Tensor core = fused ? fused_delta_rule(heads) : delta_rule(heads);
  if (!fused && core.dtype == DType::f32) core = t_.clone(core);  // reshape
  core = gated_norm(core, z, n.norm);
  return apply(core, n.output);
}

// causal_conv1d_fn
Tensor Decoder::convolved(const Tensor& mixed, DeltaLayer& n) {
  const DeltaNet& of = spec_.delta_net;
  Tensor output;
  {
    const Tensor x = t_.to(mixed, n.kernel.dtype), kernel = t_.view(n.kernel);
    output = t_.convolution(x, kernel, mixed.count / T_ * (T_ + of.kernel - 1));
  }
  output = t_.slice(output, mixed.count);
  output = t_.keeps_input(output);
  return t_.to(output, mixed.dtype);
}

// l2norm
Tensor Decoder::unit_length(const Tensor& x, int64_t rows) {
  Tensor inverse;
  {
    Tensor sums;
    {
      const Tensor square = t_.mul(x, x);
      sums = t_.sum(square, rows);
    }
    sums = t_.add_number(sums);
    inverse = t_.rsqrt(sums);
  }
  return t_.mul(x, inverse, true);
}

// The head of torch_chunk_gated_delta_rule: all in fp32, queries and keys of length one, rows filled up to whole chunks.
Decoder::DeltaHeads Decoder::delta_heads(DeltaHeads h) {
  const DeltaNet& of = spec_.delta_net;
  const int64_t rows = B_ * of.value_heads * T_, padded_rows = B_ * of.value_heads * in_chunks(T_);
  if (of.key_heads != of.value_heads) {
    h.query = t_.repeat(h.query, of.value_heads / of.key_heads);
    h.key = t_.repeat(h.key, of.value_heads / of.key_heads);
  }
  {
    const Tensor q = t_.to(h.query, DType::f32), k = t_.to(h.key, DType::f32), v = t_.to(h.value, DType::f32);
    h.beta = t_.to(h.beta, DType::f32);
    h.query = q, h.key = k, h.value = v;
  }
  h.query = unit_length(h.query, rows);
  h.key = unit_length(h.key, rows);
  h.query = t_.scale(h.query);
  {
    const Tensor q = t_.pad(h.query, padded_rows * of.key_size), k = t_.pad(h.key, padded_rows * of.key_size);
    const Tensor v = t_.pad(h.value, padded_rows * of.value_size);
    h.query = q, h.key = k, h.value = v;
  }
  const Tensor beta = t_.pad(h.beta, padded_rows);
  h.decay = t_.pad(h.decay, padded_rows);
  h.beta = beta;
  return h;
}

// torch_chunk_gated_delta_rule. What is given is held by the caller.
Tensor Decoder::delta_rule(const DeltaHeads& given) {
  const DeltaNet& of = spec_.delta_net;
  const int64_t padded = in_chunks(T_), heads = B_ * of.value_heads, systems = heads * padded / kDeltaChunk;
  DeltaHeads h = delta_heads(given);
  // Of numbers that are fp32 already no copy was made that lies head by head.
  const bool strided = given.query.dtype == DType::f32 && padded == T_;
  Tensor value_beta = t_.mul(h.value, t_.view(h.beta), true), key_beta = t_.mul(h.key, t_.view(h.beta), true);
  h.key = t_.view(h.key);  // in chunks; gradients of what systems are solved for lie column by column
  key_beta = t_.transposed_view(key_beta);
  value_beta = t_.transposed_view(value_beta);
  Tensor later = t_.empty(kDeltaChunk * kDeltaChunk, DType::u8);
  later = t_.empty(kDeltaChunk * kDeltaChunk, DType::u8);
  const Tensor sums = t_.cumsum(h.decay, padded == T_);
  Tensor pairs = t_.subtract(sums, sums, heads * padded * kDeltaChunk);
  pairs = t_.masked_fill(pairs, later);
  pairs = t_.keeps_output(pairs);
  const auto product = [&](const Tensor& left, const Tensor& right) {
    const Tensor a = strided ? t_.clone(left) : left, b = strided ? t_.clone(right) : right;
    return t_.matmul(a, b, pairs.count);
  };
  const Tensor system = t_.mul(product(key_beta, h.key), pairs);
  DeltaScan scan;
  scan.within = t_.mul(product(h.query, h.key), pairs);
  const Tensor decayed = t_.mul(key_beta, t_.keeps_output(sums), true);
  scan.values = t_.solve_triangular(system, value_beta, systems);
  scan.old_keys = t_.solve_triangular(system, decayed, systems);
  scan.state = t_.empty(heads * of.key_size * of.value_size, DType::f32);
  scan.output = t_.empty_like(scan.values);
  h.query = t_.mul(h.query, t_.keeps_output(sums), true);
  {
    Tensor until_end;
    {
      const Tensor difference = t_.subtract(t_.slice(sums, systems), sums, sums.count);
      until_end = t_.keeps_output(difference);
    }
    h.key = t_.mul(h.key, until_end, true);
  }
  scan.decays = t_.keeps_output(t_.slice(sums, systems));
  for (int64_t i = 0; i < padded / kDeltaChunk; ++i) scan_chunk(scan, h);
  scan.state = {};
  scan.output = t_.clone(scan.output);
  if (padded != T_) scan.output = t_.slice(scan.output, heads * T_ * of.value_size);
  return t_.to(scan.output, given.query.dtype);
}

// The loop of torch_chunk_gated_delta_rule.
void Decoder::scan_chunk(DeltaScan& scan, const DeltaHeads& h) {
  const DeltaNet& of = spec_.delta_net;
  const int64_t heads = B_ * of.value_heads, of_key = heads * kDeltaChunk * of.key_size;
  const int64_t numbers = heads * kDeltaChunk * of.value_size;
  {
    const Tensor values = t_.slice(scan.values, numbers), keys = t_.slice(scan.old_keys, of_key);
    scan.fresh = t_.subtract(values, t_.matmul(keys, scan.state, numbers), numbers);
  }
  scan.across = t_.matmul(t_.slice(h.query, of_key), scan.state, numbers);
  {
    Tensor sum;
    {
      const Tensor inside = t_.matmul(t_.slice(scan.within, heads * kDeltaChunk * kDeltaChunk), scan.fresh, numbers);
      sum = t_.add(scan.across, inside);
    }
    scan.output = t_.with_part(scan.output, sum);
  }
  const Tensor kept = t_.mul(scan.state, t_.slice(scan.decays, heads), true);
  const Tensor added = t_.matmul(t_.slice(h.key, of_key), scan.fresh, scan.state.count);
  scan.state = t_.add(kept, added);
}

}  // namespace snug::eager
