// LitGPT's linears: bitsandbytes' under Lightning, and adapters (litgpt/lora.py).

#include <utility>

#include "eager/litgpt.h"

namespace snug::eager {

// functional.py dequantize_4bit: in the dtype that was quantized, fp16
Tensor LitGpt::dequantized(const Linear& l) {
  const Tensor scales = setup_.double_quant ? t_.empty(l.scales.count, DType::f32) : Tensor{};
  return t_.empty(l.in * l.out, DType::f16);
}

// nn.Linear; bitsandbytes/autograd/_functions.py, MatMul4Bit
Tensor LitGpt::base(const Tensor& x, Linear& l) {
  if (!l.quantized) return t_.linear(x, l.weight, l.bias, l.in, l.out);
  const bool grads = std::exchange(t_.grad_enabled, false);
  Tensor output;
  {
    Tensor weight = dequantized(l);
    weight = t_.to(weight, x.dtype);
    output = t_.linear(x, weight, l.bias, l.in, l.out);
  }
  t_.grad_enabled = grads;
  const Tensor kept = t_.stack().four_bit_keeps_input ? x.detached() : Tensor{};
  t_.record({x}, {&output}, {}, [this, &l, kept, count = x.count](const Node&, const Tensors&, Tensors& g) -> Tensors {
    Tensor weight = dequantized(l);
    weight = t_.to(weight, g[0].dtype);
    Tensor gradient = t_.empty(count, g[0].dtype);
    t_.need_cublas();
    return {gradient};
  });
  return output;
}

// LoRALinear.forward
Tensor LitGpt::apply(const Tensor& x, Linear& l) {
  Tensor pretrained = base(x, l);
  if (l.rank == 0) return pretrained;
  Tensor lora;
  {
    Tensor high;
    {
      Tensor low;
      {
        const Tensor kept = dropped(x);
        low = t_.linear(kept, l.a, {}, l.in, l.rank);
      }
      high = t_.linear(low, l.b, {}, l.rank, l.out);
    }
    lora = t_.scale(high);
  }
  return t_.add(pretrained, lora);
}

// LoRAQKVLinear.forward
Tensor LitGpt::apply_qkv(const Tensor& x, Linear& l) {
  Tensor pretrained = base(x, l);
  if (l.rank == 0) return pretrained;
  const auto parts = static_cast<int64_t>(l.parts.size());
  Tensor low;
  {
    const Tensor kept = dropped(x);
    low = t_.linear(kept, l.a, {}, l.in, parts * l.rank);
  }
  const Tensor high = grouped(t_.transposed_view(low), l);
  Tensor lora;
  {
    const Tensor padded = zero_padded(high, l);
    lora = t_.scale(padded);
  }
  return t_.add(pretrained, lora);
}

// conv1d: one convolution in groups where queries, keys and values are as wide, else one for each
Tensor LitGpt::grouped(const Tensor& input, Linear& l) {
  int64_t width = 0;
  for (const int64_t part : l.parts) width += part;
  if (K_ == H_) return convolved(input, l.b, B_ * T_ * width);
  const auto parts = static_cast<int64_t>(l.parts.size());
  std::vector<int64_t> rows(l.parts.size(), input.count / parts), weights;
  for (const int64_t part : l.parts) weights.push_back(part * l.rank);
  const Tensors inputs = t_.split(input, rows), of_b = t_.split(l.b, weights);
  Tensors made;
  for (size_t i = 0; i < inputs.size(); ++i) made.push_back(convolved(inputs[i], of_b[i], B_ * T_ * l.parts[i]));
  Tensor all = t_.cat(made);
  while (!made.empty()) made.pop_back();  // as a list of Python's goes
  return all;
}

// ATen/native/Convolution.cpp, _convolution and convolution_backward: rows of one dimension are made contiguous
Tensor LitGpt::convolved(const Tensor& input, const Tensor& weight, int64_t out) {
  Tensor y;
  {
    const Tensor contiguous = t_.empty_like(input);
    y = t_.empty(out, input.dtype);
  }
  t_.record({input, weight}, {&y}, {input, weight}, [this](const Node& node, const Tensors& saved, Tensors& g) -> Tensors {
    const Tensor gradient = t_.empty_like(g[0]), contiguous = t_.empty_like(saved[0]);
    Tensors results(2);
    if (node.needs(0)) results[0] = t_.empty_like(saved[0]);
    if (node.needs(1)) results[1] = t_.empty_like(saved[1]);
    return results;
  });
  return y;
}

// zero_pad: columns of queries, keys and values that have no adapter stay zero
Tensor LitGpt::zero_padded(const Tensor& x, Linear& l) {
  if (l.parts.size() == 3) return x;
  Tensor result = t_.empty(B_ * T_ * l.out, x.dtype), source = x, places = l.places;
  if (!places.defined()) places = t_.empty(x.count / (B_ * T_), DType::i64, Role::weights);
  if (t_.stack().litgpt_pads_in_place) {
    l.places = places;
  } else {
    if (B_ > 1) source = t_.clone(x);
    result = t_.empty_like(result);
  }
  // derivatives.yaml, index_copy: the source is kept for its shape
  t_.record({source}, {&result}, {places, source},
            [this, count = x.count](const Node&, const Tensors&, Tensors& g) -> Tensors {
              return {t_.empty(count, g[0].dtype)};  // index_select
            });
  return result;
}

}  // namespace snug::eager
