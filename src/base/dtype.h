#pragma once
// Element types of tensors. The names are those of safetensors' headers, in lower case. nf4 and fp4 are codes of 4 bits, two
// to a byte; what they and i8 codes of weights stand for needs scales beside them (quantize/).

#include <cstdint>
#include <string_view>

#include "base/checked.h"

namespace snug {

enum class DType : uint8_t { f32, bf16, f16, f64, i32, i64, u8, i8, nf4, fp4 };

constexpr bool is_4bit(DType dtype) { return dtype == DType::nf4 || dtype == DType::fp4; }

// Bytes of one element; 0 for 4-bit codes, which `bytes_of` counts.
constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::i32: return 4;
    case DType::bf16:
    case DType::f16: return 2;
    case DType::f64:
    case DType::i64: return 8;
    case DType::u8:
    case DType::i8: return 1;
    case DType::nf4:
    case DType::fp4: return 0;
  }
  return 0;
}

// Bytes of a dense row of elements.
inline int64_t bytes_of(DType dtype, int64_t elements) {
  return is_4bit(dtype) ? elements / 2 + elements % 2 : checked_mul(elements, size_of(dtype));
}

// Floating point in two bytes, as frozen weights and saved activations may be stored.
constexpr bool is_half(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

// The name people write in recipes: "f32" is "float32", "bf16" is "bfloat16".
constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "float32";
    case DType::bf16: return "bfloat16";
    case DType::f16: return "float16";
    case DType::f64: return "float64";
    case DType::i32: return "int32";
    case DType::i64: return "int64";
    case DType::u8: return "uint8";
    case DType::i8: return "int8";
    case DType::nf4: return "nf4";
    case DType::fp4: return "fp4";
  }
  return "?";
}

}  // namespace snug
