// Quantized weights: in which order they come to the device, what bitsandbytes keeps of each, and its products.

#include <algorithm>
#include <string>
#include <utility>

#include "eager/decoder.h"
#include "model/module_names.h"

namespace snug::eager {

namespace {

// One tensor of a safetensors file.
struct Stored {
  std::string name;
  Linear* linear;  // that is quantized; null: the tensor stays as it is
  Tensor* tensor;
  int64_t count;
};

}  // namespace

// transformers' from_pretrained: tensors in the order of the file's names, each quantized as it arrives.
void Decoder::load_quantized() {
  std::vector<Stored> tensors;
  const auto plain = [&](const std::string& name, Tensor& tensor, int64_t count) {
    if (count > 0) tensors.push_back({name, nullptr, &tensor, count});
  };
  const ModuleNames names = module_names(spec_);
  const std::string root(names.root);
  const auto linear = [&](const std::string& path, Linear& l) {
    if (!l.present) return;
    tensors.push_back({path + l.path + ".weight", &l, nullptr, 0});
    if (l.biased) plain(path + l.path + ".bias", l.bias, l.out);
  };
  const auto norm = [&](const std::string& path, Norm& n) {
    plain(path + n.path + ".weight", n.weight, n.size);
    if (spec_.norm == NormKind::layer) plain(path + n.path + ".bias", n.bias, n.size);
  };
  plain(root + std::string(names.embedding) + ".weight", embedding_, spec_.vocab_size * C_);
  if (spec_.learned_positions)
    plain(root + std::string(names.positions) + ".weight", position_embedding_,
          (spec_.max_position + spec_.position_offset) * C_);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Block& b = blocks_[i];
    const std::string path = root + std::string(names.layers) + "." + std::to_string(i) + ".";
    for (Linear* l : linears_of(b)) linear(path, *l);
    if (b.delta.output.present) {
      const std::string inner = path + "linear_attn.";
      plain(inner + "A_log", b.delta.decay_log, spec_.delta_net.value_heads);
      plain(inner + "conv1d.weight", b.delta.kernel, b.delta.mixed.out * spec_.delta_net.kernel);
      plain(inner + "dt_bias", b.delta.step_bias, spec_.delta_net.value_heads);
      norm(path, b.delta.norm);
    }
    if (spec_.experts.count > 0)
      visit_experts(b, [&](Tensor& tensor, int64_t count, int64_t, bool) { plain(path + "mlp", tensor, count); });
    for (Norm* n : {&b.query_norm, &b.key_norm, &b.attention_norm, &b.mlp_norm, &b.attention_post_norm, &b.mlp_post_norm})
      norm(path, *n);
  }
  norm(root, final_norm_);
  for (TowerPart& part : tower_) {
    linear("", part.linear);
    if (!part.linear.present) plain(part.name, part.tensor, part.count);
  }
  if (!spec_.tied_embeddings) plain("lm_head.weight", head_.weight, spec_.vocab_size * C_);
  if (spec_.head_bias) plain("lm_head.bias", head_.bias, spec_.vocab_size);
  std::sort(tensors.begin(), tensors.end(), [](const Stored& a, const Stored& b) { return a.name < b.name; });
  for (const Stored& stored : tensors) {
    if (stored.linear) {
      switch (setup_.quantization) {
        case Quantization::eight_bit: quantize_eight_bit(*stored.linear); break;
        case Quantization::gptq: load_gptq(*stored.linear); break;
        default: quantize_four_bit(*stored.linear);
      }
    } else {
      *stored.tensor = t_.empty(stored.count, setup_.weights, Role::weights);
    }
  }
  make_frequencies();
}

// bitsandbytes/functional.py, quantize_4bit: blocks of 64 numbers; with statistics compressed, blocks of 256 scales
void Decoder::quantize_four_bit(Linear& l) {
  const int64_t count = l.in * l.out, scales = (count + 63) / 64;
  const Tensor whole = t_.empty(count, setup_.weights, Role::temporaries);
  l.four_bit = true;
  l.compute = setup_.weights;
  l.scales = t_.empty(scales, DType::f32, Role::weights);
  l.weight = t_.empty((count + 1) / 2 / bytes_of(setup_.packed, 1), setup_.packed, Role::weights);
  l.code = t_.empty(16, DType::f32, Role::weights);
  { const Tensor magnitudes = t_.empty(16, DType::f32), largest = t_.empty(1, DType::f32); }
  if (!setup_.double_quant) return;
  l.offset = t_.empty(1, DType::f32, Role::weights);
  const bool copies = t_.stack().four_bit_state_is_copied;
  const Tensor centred = copies ? t_.empty(scales, DType::f32) : Tensor{};
  if (!scales_code_.defined()) scales_code_ = t_.empty(256, DType::f32, Role::weights);
  l.scale_scales = t_.empty((scales + 255) / 256, DType::f32, Role::weights);
  const Tensor narrow = t_.empty(scales, DType::u8, Role::weights);
  if (copies) l.scales_code = t_.empty(256, DType::f32, Role::weights);
  l.scales = narrow;
}

// peft/utils/other.py: what is not quantized in fp32
void Decoder::prepare() {
  if (setup_.preparation == Preparation::none) return;
  const auto widen = [&](Tensor& tensor, int64_t count, int64_t, bool) {
    if (is_half(tensor.dtype) && tensor.count == count) tensor = t_.empty(tensor.count, DType::f32, Role::weights);
  };
  visit_tower(widen);
  visit_parameters(widen);
  if (t_.stack().preparation_empties_cache) t_.device().release_cached();
}

// nn/modules.py, Int8Params.cuda: rows' largest numbers; before 0.45 columns' too, and a transposed copy that is dropped
void Decoder::quantize_eight_bit(Linear& l) {
  const Tensor whole = t_.empty(l.in * l.out, DType::f16);
  l.eight_bit = true;
  l.scales = t_.empty(l.out, DType::f32, Role::weights);
  if (!t_.stack().int8_is_transformed) {
    l.weight = t_.empty(l.in * l.out, DType::i8, Role::weights);
    return;
  }
  const Tensor columns = t_.empty(l.in, DType::f32);
  const Tensor transposed = t_.empty(l.in * l.out, DType::i8);
  l.weight = t_.empty(l.in * l.out, DType::i8, Role::weights);
}

// autograd/_functions.py, MatMul8bitLt since 0.45. What its context keeps is freed with the graph.
Tensor Decoder::matmul_eight_bit(const Tensor& x, Linear& l) {
  t_.device().wait();  // functional.py, int8_vectorwise_quant: which columns have outliers
  if (t_.stack().int8_is_transformed) return matmul_transformed(x, l);
  const int64_t rows = x.count / l.in, outputs = rows * l.out;
  Tensor output;
  {
    Tensor narrow = x.dtype == DType::f16 ? Tensor{} : t_.empty(x.count, DType::f16);
    const Tensor scales = t_.empty(rows, DType::f32), codes = t_.empty(x.count, DType::i8);
    { const Tensor magnitudes = t_.empty(x.count, DType::f16), outliers = t_.empty(x.count, DType::u8); }
    narrow = {};
    const Tensor sums = t_.empty(outputs, DType::i32);
    output = t_.empty(outputs, DType::f16);
    if (x.dtype != DType::f16) output = t_.empty(outputs, x.dtype);
  }
  t_.record({x}, {&output}, {}, [this, &l, kept = x.detached()](const Node&, const Tensors&, Tensors& g) -> Tensors {
    const Tensor weight = t_.empty(l.in * l.out, kept.dtype);
    { const Tensor scales = t_.empty(l.out, DType::f32); }
    const Tensor cast = g[0].dtype == kept.dtype ? Tensor{} : t_.empty(g[0].count, kept.dtype);
    Tensor gradient = t_.empty(kept.count, kept.dtype);
    t_.need_cublas();
    return {gradient};
  });
  return output;
}

// MatMul8bitLt before 0.45: codes in the order of cublasLt's kernels, rows and columns scaled apart
Tensor Decoder::matmul_transformed(const Tensor& x, Linear& l) {
  const int64_t rows = x.count / l.in, outputs = rows * l.out;
  Tensor output, scales, transposed;
  {
    Tensor narrow = x.dtype == DType::f16 ? Tensor{} : t_.empty(x.count, DType::f16);
    const Tensor row_scales = t_.empty(rows, DType::f32);
    scales = t_.empty(l.in, DType::f32);
    Tensor counts = t_.empty(rows * ((l.in + 255) / 256) + 1, DType::i32);
    const Tensor codes = t_.empty(x.count, DType::i8);
    transposed = t_.empty(x.count, DType::i8);
    narrow = counts = {};
    Tensor reordered;
    if (!l.reordered) reordered = t_.empty(l.in * l.out, DType::i8, Role::weights);
    const Tensor columns = t_.empty(x.count, DType::i8);
    const Tensor sums = t_.empty(outputs, DType::i32);
    output = t_.empty(outputs, DType::f16);
    { const Tensor statistics = t_.empty(rows, DType::f32), others = t_.empty(l.out, DType::f32); }
    if (x.dtype != DType::f16) output = t_.empty(outputs, x.dtype);
    output = t_.empty(outputs, x.dtype);  // cloned
    if (!l.reordered) l.weight = std::move(reordered);
    l.reordered = true;
  }
  t_.record({x}, {&output}, {},
            [this, &l, rows, kept = x.detached(), scales, transposed](const Node&, const Tensors&, Tensors& g) -> Tensors {
              Tensor narrow = g[0].dtype == DType::f16 ? Tensor{} : t_.empty(g[0].count, DType::f16);
              const Tensor row_scales = t_.empty(rows, DType::f32), column_scales = t_.empty(l.out, DType::f32);
              const Tensor codes = t_.empty(g[0].count, DType::i8), others = t_.empty(g[0].count, DType::i8);
              narrow = {};
              Tensor weight = t_.empty(l.in * l.out, DType::i8);
              weight = t_.to(weight, kept.dtype);
              { const Tensor factors = t_.empty(l.out, DType::f32); }
              Tensor gradient = t_.empty(kept.count, g[0].dtype);
              t_.need_cublas();
              return {gradient};
            });
  return output;
}

// AutoGPTQ and gptqmodel, nn_modules/qlinear/qlinear_tritonv2.py QuantLinear: as the checkpoint has them
void Decoder::load_gptq(Linear& l) {
  const int64_t group = setup_.gptq_group > 0 ? setup_.gptq_group : l.in, groups = (l.in + group - 1) / group;
  l.gptq = true;
  l.scales_code = t_.empty(l.in, DType::i32, Role::weights);             // g_idx
  l.weight = t_.empty(l.in / 8 * l.out, DType::i32, Role::weights);      // qweight
  l.offset = t_.empty(groups * (l.out / 8), DType::i32, Role::weights);  // qzeros
  l.scales = t_.empty(groups * l.out, DType::f16, Role::weights);
}

// triton_utils/dequant.py QuantLinearFunction: a product with the whole weight in fp16
Tensor Decoder::matmul_gptq(const Tensor& x, Linear& l) {
  const bool grads = std::exchange(t_.grad_enabled, false);
  Tensor output;
  {
    const Tensor weight = dequantized(l);
    output = t_.linear(x, weight, {}, l.in, l.out);
  }
  t_.grad_enabled = grads;
  t_.record({x}, {&output}, {}, [this, &l, count = x.count](const Node&, const Tensors&, Tensors& g) -> Tensors {
    const Tensor weight = dequantized(l);
    Tensor gradient = t_.empty(count, g[0].dtype);
    t_.need_cublas();
    return {gradient};
  });
  return l.biased ? t_.add(output, l.bias) : output;
}

// functional.py, dequantize_4bit; triton_utils/dequant.py, dequant248
Tensor Decoder::dequantized(const Linear& l) {
  if (l.gptq) return t_.empty(l.in * l.out, DType::f16);
  const Tensor scales = setup_.double_quant ? t_.empty(l.scales.count, DType::f32) : Tensor{};
  const Tensor shifted = scales.defined() && t_.stack().four_bit_state_is_copied ? t_.empty_like(scales) : Tensor{};
  return t_.empty(l.in * l.out, setup_.weights);
}

// What the layer below an adapter gives.
Tensor Decoder::base(const Tensor& x, Linear& l) {
  if (l.eight_bit) return matmul_eight_bit(x, l);
  if (l.gptq) return matmul_gptq(x, l);
  if (!l.four_bit)
    return called(&l, {&l.weight, &l.bias}, x, [&](const Tensor& y) { return t_.linear(y, l.weight, l.bias, l.in, l.out); });
  if (t_.stack().four_bit_follows_input && x.dtype != DType::f16) l.compute = x.dtype;
  const DType dtype = x.dtype;
  const Tensor input = t_.to(x, l.compute);
  const Tensor output = matmul_four_bit(input, l);
  return t_.to(output, dtype);
}

// autograd/_functions.py, MatMul4Bit
Tensor Decoder::matmul_four_bit(const Tensor& x, Linear& l) {
  const bool grads = std::exchange(t_.grad_enabled, false);
  Tensor output;
  {
    const Tensor bias = l.biased ? t_.to(l.bias, l.compute) : Tensor{};
    const bool one_op = t_.stack().four_bit_state_is_copied;  // gemm_4bit holds the scales until it is done
    const Tensor scales = one_op && setup_.double_quant ? t_.empty(l.scales.count, DType::f32) : Tensor{};
    const Tensor shifted = one_op && setup_.double_quant ? t_.empty(l.scales.count, DType::f32) : Tensor{};
    Tensor weight = one_op ? t_.empty(l.in * l.out, setup_.weights) : dequantized(l);
    weight = t_.to(weight, x.dtype);
    output = t_.linear(x, weight, bias, l.in, l.out);
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

}  // namespace snug::eager
