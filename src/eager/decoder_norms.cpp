// Norms of rows, in the order of transformers' modeling files.

#include "eager/decoder.h"

namespace snug::eager {

// The root of the mean square of each row, inverted, times the row (in fp32).
Tensor Decoder::normalized(const Tensor& x, int64_t rows) {
  Tensor root;
  {
    Tensor variance;
    {
      const Tensor square = t_.square(x);
      variance = t_.mean(square, rows);
    }
    variance = t_.add_number(variance);
    root = t_.rsqrt(variance);
  }
  return t_.mul(x, root, true);
}

// The same of rows whose mean square is a local of the norm until that ends.
Tensor Decoder::over_root(const Tensor& x, int64_t rows, Tensor& variance) {
  {
    const Tensor square = t_.square(x);
    variance = t_.mean(square, rows);
  }
  Tensor root;
  {
    const Tensor shifted = t_.add_number(variance);
    root = t_.rsqrt(shifted);
  }
  return t_.mul(x, root, true);
}

// LlamaRMSNorm.forward, Gemma2RMSNorm.forward, nn.LayerNorm
Tensor Decoder::norm(const Tensor& x, const Norm& n) {
  return called(&n, {&n.weight, &n.bias}, x, [&](const Tensor& y) { return normed(y, n); });
}

Tensor Decoder::normed(const Tensor& x, const Norm& n) {
  const int64_t rows = x.count / n.size;
  if (spec_.norm == NormKind::layer && spec_.norms_from_zero) {  // NemotronLayerNorm1P
    const auto cast = [this](const Tensor& y) { return t_.autocasts() ? t_.to(y, t_.autocast_dtype()) : y; };
    const Tensor gain = t_.add_number(n.weight);
    return t_.layer_norm_as_it_is(cast(x), cast(gain), cast(n.bias), rows);
  }
  if (spec_.norm == NormKind::layer) return t_.layer_norm(x, n.weight, n.bias, rows);
  if (setup_.fused.norm) return fused_norm(x, n);
  if (setup_.liger.norm) return liger_norm(x, n);
  if (spec_.norms_from_zero) {
    Tensor h;
    {
      const Tensor wide = t_.to(x, DType::f32);
      h = normalized(wide, rows);
    }
    {
      Tensor gain = t_.to(n.weight, DType::f32);
      gain = t_.add_number(gain);
      h = t_.mul(h, gain);
    }
    return t_.to(h, x.dtype);
  }
  Tensor h = t_.to(x, DType::f32), variance;
  h = over_root(h, rows, variance);
  if (spec_.naming == TensorNaming::olmo2) {  // Olmo2RMSNorm
    const Tensor scaled = t_.mul(n.weight, h);
    return t_.to(scaled, x.dtype);
  }
  const Tensor narrow = t_.to(h, x.dtype);
  return t_.mul(n.weight, narrow);
}

// Qwen3_5RMSNormGated.forward
Tensor Decoder::gated_norm(const Tensor& x, const Tensor& gate, Norm& n) {
  const int64_t rows = x.count / n.size;
  Tensor h = t_.to(x, DType::f32), variance;
  h = over_root(h, rows, variance);
  {
    const Tensor narrow = t_.to(h, x.dtype);
    h = t_.mul(n.weight, narrow);
  }
  {
    const Tensor open = t_.keeps_input(t_.to(gate, DType::f32));
    h = t_.mul(h, open);
  }
  return t_.to(h, x.dtype);
}

}  // namespace snug::eager
