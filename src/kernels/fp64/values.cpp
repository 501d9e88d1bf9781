#include "kernels/fp64/values.h"

#include "base/dynamic_map.h"
#include "base/error.h"
#include "quantize/four_bit.h"

namespace snug::kernels::fp64 {

double rounded(double value, DType dtype) {
  const auto narrow = static_cast<float>(value);
  if (dtype == DType::bf16) return static_cast<double>(bf16_to_f32(f32_to_bf16(narrow)));
  if (dtype == DType::f16) return static_cast<double>(f16_to_f32(f32_to_f16(narrow)));
  return static_cast<double>(narrow);
}

double Reader::operator[](int64_t i) const {
  switch (in_.dtype) {
    case DType::f32: return static_cast<double>(static_cast<const float*>(in_.data)[i]);
    case DType::bf16: return static_cast<double>(bf16_to_f32(static_cast<const uint16_t*>(in_.data)[i]));
    case DType::f16: return static_cast<double>(f16_to_f32(static_cast<const uint16_t*>(in_.data)[i]));
    case DType::nf4:
    case DType::fp4:
    case DType::i8: return quantized(i);
    default: throw Error("the fp64 kernels do not read " + std::string(name_of(in_.dtype)));
  }
}

// Scales are fp32, and so is their product with a code's value (Dettmers et al., "QLoRA", 2023, equation 6).
double Reader::quantized(int64_t i) const {
  const Scales& scales = in_.scales;
  const int64_t at = in_.first + i, block = at / scales.block_size;
  float scale = 0;
  if (scales.nested_absmax == nullptr) {
    scale = static_cast<const float*>(scales.absmax)[block];
  } else {
    const uint8_t code = static_cast<const uint8_t*>(scales.absmax)[block];
    scale = DynamicMap::of_signed()[code] * scales.nested_absmax[block / kNestedBlock] + *scales.offset;
  }
  if (in_.dtype == DType::i8) {
    const auto code = static_cast<float>(static_cast<const int8_t*>(in_.data)[at]);
    return rounded(static_cast<double>(code) * static_cast<double>(scale) / 127.0, scales.values);
  }
  const uint8_t pair = static_cast<const uint8_t*>(in_.data)[at / 2];
  const size_t code = at % 2 == 0 ? pair >> 4 : pair & 15;
  const auto values = values_of(in_.dtype == DType::nf4 ? FourBit::nf4 : FourBit::fp4);
  return rounded(static_cast<double>(values[code] * scale), scales.values);
}

void Writer::set(int64_t i, double value) const {
  const auto narrow = static_cast<float>(value);
  switch (out_.dtype) {
    case DType::f32: static_cast<float*>(out_.data)[i] = narrow; break;
    case DType::bf16: static_cast<uint16_t*>(out_.data)[i] = f32_to_bf16(narrow); break;
    case DType::f16: static_cast<uint16_t*>(out_.data)[i] = f32_to_f16(narrow); break;
    default: throw Error("the fp64 kernels do not write " + std::string(name_of(out_.dtype)));
  }
}

}  // namespace snug::kernels::fp64
