// fms-acceleration's kernels in the place of transformers' code (plugins/fused-ops-and-kernels/src/fms_acceleration_foak,
// at 876e2ed6), most of them Unsloth's of 2024: what each keeps, and what its backward writes over instead of allocating.

#include <algorithm>
#include <utility>

#include "eager/decoder.h"

namespace snug::eager {

namespace {

int64_t next_power_of_two(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

constexpr int64_t kMostWords =
    65536;  // kernels/unsloth/cross_entropy_loss.py MAX_FUSED_SIZE: words that a kernel takes at once

}  // namespace

// kernels/unsloth/rms_layernorm.py Fast_RMS_Layernorm: the gradient is written over that of the output; the weight gets
// none.
Tensor Decoder::fused_norm(const Tensor& x, const Norm& n) {
  t_.before({x, n.weight}, {x, n.weight});
  Tensor y = t_.empty_like(x);
  const Tensor roots = t_.empty(x.count / n.size, DType::f32);
  t_.record({x}, {&y}, {x, n.weight, roots}, [](const Node&, const Tensors&, Tensors& g) -> Tensors { return {g[0]}; });
  return y;
}

// kernels/unsloth/rope_embedding.py Fast_RoPE_Embedding: both ways in place. Where attention's gradient lies head by head,
// it is copied first.
Tensor Decoder::fused_rotation(const Tensor& x) {
  Tensor y = x.detached();
  const bool lies_by_tokens = setup_.attention == Attention::flash;
  t_.record({x}, {&y}, {}, [this, lies_by_tokens](const Node&, const Tensors&, Tensors& g) -> Tensors {
    return {lies_by_tokens ? g[0] : t_.empty_like(g[0])};
  });
  return y;
}

// kernels/unsloth/cross_entropy_loss.py Fast_CrossEntropyLoss: the gradient is written over the logits.
Tensor Decoder::fused_loss(const Tensor& shifted, const Tensor& labels) {
  const int64_t rows = shifted.count / spec_.vocab_size, chunks = (spec_.vocab_size + kMostWords - 1) / kMostWords;
  Tensor losses = t_.empty(rows, DType::f32), sums = t_.empty(rows * chunks, DType::f32);
  if (chunks > 1) {
    sums = t_.empty(rows, DType::f32);
    const Tensor ignored = t_.empty(rows, DType::u8);
  }
  t_.record({shifted}, {&losses}, {shifted, sums, labels},
            [](const Node&, const Tensors& saved, Tensors&) -> Tensors { return {saved[0]}; });
  const Tensor sum = t_.mean(losses, 1);  // sum
  losses = {};
  return t_.scale(sum);
}

// fused_ops/liger_ce/fused_linear_cross_entropy_loss.py: gradients are made in forward, a chunk of rows at a time, and only
// scaled in backward.
Tensor Decoder::fused_linear_loss(const Tensor& hidden) {
  const int64_t rows = B_ * (T_ - 1);
  const Tensor weight = spec_.tied_embeddings ? embedding_ : head_.weight;
  Tensor shifted = t_.full_slices(t_.slice(hidden, rows * C_), 1);
  if (B_ > 1) shifted = t_.clone(shifted);
  const Tensor labels = B_ > 1 ? t_.empty(rows, DType::i64) : Tensor{};
  const Tensor weight_gradient = weight.requires_grad ? t_.empty_like(weight) : Tensor{};
  const Tensor gradient = t_.empty_like(shifted), losses = t_.empty(rows, DType::f32);
  const bool grads = std::exchange(t_.grad_enabled, false);
  fused_linear_gradients(shifted.detached(), weight.detached(), rows);
  t_.grad_enabled = grads;
  Tensor loss = t_.empty(1, DType::f32);
  t_.record({shifted, weight}, {&loss}, {gradient, weight_gradient},
            [](const Node& node, const Tensors& saved, Tensors&) -> Tensors {
              return {node.needs(0) ? saved[0] : Tensor{}, node.needs(1) ? saved[1] : Tensor{}};
            });
  return loss;
}

// fused_linear_cross_entropy_forward: what a chunk leaves is there until the next has its own.
void Decoder::fused_linear_gradients(const Tensor& hidden, const Tensor& weight, int64_t rows) {
  const int64_t V = spec_.vocab_size, parts = (V + C_ - 1) / C_;
  const int64_t chunk = next_power_of_two((rows + parts - 1) / parts);
  const DType dtype = t_.autocasts() ? t_.autocast_dtype() : hidden.dtype;
  Tensor logits, scaled;
  for (int64_t begin = 0; begin < rows; begin += chunk) {
    const int64_t count = std::min(chunk, rows - begin);
    Tensor part = hidden;
    part.count = count * C_;
    logits = t_.linear(part, weight, {}, C_, V);
    logits = t_.to(logits, DType::f32);
    logits = t_.to(logits, dtype);
    Tensor product = t_.scale(logits);
    scaled = std::move(product);
    const Tensor gradient = t_.linear(scaled, weight, {}, V, C_);
    if (weight.requires_grad) t_.need_cublas();
  }
}

// models/utils.py trigger_fused_ops and _is_loralayer: all of these linears have adapters.
bool Decoder::fuses_adapters(std::initializer_list<const Linear*> linears) const {
  return setup_.fused.adapters && std::all_of(linears.begin(), linears.end(), [](const Linear* l) {
           return (l->four_bit || l->gptq) && l->adapter.rank > 0;
         });
}

// fused_ops/unsloth_lora/utils.py matmul_lora: products of the dequantized weight and of the adapter, added in place.
Tensor Decoder::fused_product(const Tensor& x, Linear& l, const Tensor& ready, Tensor& dropped) {
  Tensor output;
  {
    const Tensor weight = ready.defined() ? ready : dequantized(l);
    output = t_.matmul(x, weight, x.count / l.in * l.out);
  }
  dropped = t_.dropout(x, setup_.dropout);
  Tensor low;
  {
    const Tensor a = t_.to(l.adapter.a.detached(), x.dtype);
    low = t_.matmul(dropped, a, x.count / l.in * l.adapter.rank);
  }
  Tensor b = t_.to(l.adapter.b.detached(), x.dtype);
  b = t_.scale(b);
  const Tensor high = t_.matmul(low, b, output.count);
  return output;
}

// fused_ops/unsloth_lora/bnb/fast_lora.py LoRA_QKV and LoRA_W: an input and, of each linear, its dropped copy are kept; the
// gradient of three linears' input is written over the input (not in gptq/fast_lora.py).
Tensors Decoder::fused_adapters(const Tensor& x, std::vector<Linear*> linears) {
  Tensors outputs(linears.size()), kept{x}, inputs{x};
  const bool grads = std::exchange(t_.grad_enabled, false), gptq = linears[0]->gptq;
  Tensors weights(linears.size());  // gptq/fast_lora.py: all at once, and until the end
  for (size_t i = 0; gptq && i < linears.size(); ++i) weights[i] = dequantized(*linears[i]);
  for (size_t i = 0; i < linears.size(); ++i) {
    Tensor dropped;
    outputs[i] = fused_product(x.detached(), *linears[i], weights[i], dropped);
    kept.push_back(dropped);
    inputs.push_back(linears[i]->adapter.a);
    inputs.push_back(linears[i]->adapter.b);
  }
  weights.clear();
  t_.grad_enabled = grads;
  std::vector<Tensor*> made;
  for (Tensor& output : outputs) made.push_back(&output);
  const int64_t rows = x.count / linears[0]->in;
  const bool overwrites = linears.size() > 1 && !gptq;
  t_.record(inputs, made, kept, [this, linears, rows, overwrites](const Node&, const Tensors& saved, Tensors& g) -> Tensors {
    Tensors results{{}};
    for (size_t i = 0; i < linears.size(); ++i) fused_adapter_gradients(*linears[i], g[i], rows, results);
    for (size_t i = 0; i < linears.size(); ++i) {
      const bool first = i == 0;
      Tensor product;
      {
        const Tensor weight = dequantized(*linears[i]);
        if (!first || !overwrites) product = t_.empty(saved[0].count, saved[0].dtype);
        t_.need_cublas();
        if (first) results[0] = overwrites ? saved[0] : product;
        if (!first) product = {};
      }
      fused_input_gradient(*linears[i], g[i], saved[0]);
    }
    return results;
  });
  return outputs;
}

// d_A = X.t() @ (dY @ B.t()), d_B = (A.t() @ X.t()) @ dY
void Decoder::fused_adapter_gradients(const Linear& l, const Tensor& gradient, int64_t rows, Tensors& results) {
  Tensor of_a, of_b;
  {
    const Tensor b = t_.to(l.adapter.b.detached(), gradient.dtype);
    const Tensor low = t_.empty(rows * l.adapter.rank, gradient.dtype);
    t_.need_cublas();
    of_a = t_.empty(l.adapter.a.count, gradient.dtype);
  }
  {
    const Tensor a = t_.to(l.adapter.a.detached(), gradient.dtype);
    const Tensor low = t_.empty(rows * l.adapter.rank, gradient.dtype);
    of_b = t_.empty(l.adapter.b.count, gradient.dtype);
  }
  results.push_back(of_a);
  results.push_back(of_b);
}

// dX += (X != 0) * (dY @ B.t() @ (s * A.t()))
void Decoder::fused_input_gradient(const Linear& l, const Tensor& gradient, const Tensor& into) {
  const Tensor nonzero = t_.empty(into.count, DType::u8);
  Tensor high;
  {
    Tensor low;
    {
      const Tensor b = t_.to(l.adapter.b.detached(), gradient.dtype);
      low = t_.empty(gradient.count / l.out * l.adapter.rank, gradient.dtype);
    }
    Tensor a = t_.to(l.adapter.a.detached(), gradient.dtype);
    a = t_.scale(a);
    high = t_.empty(into.count, into.dtype);
  }
  const Tensor masked = t_.empty_like(into);
}

}  // namespace snug::eager
