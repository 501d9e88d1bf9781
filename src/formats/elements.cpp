#include "formats/elements.h"

#include <cstring>
#include <string>

#include "base/bfloat16.h"
#include "base/error.h"
#include "base/float16.h"

namespace snug {

namespace {

template <float (*widen)(uint16_t)>
void decode_halves(std::span<const std::byte> bytes, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes.data() + i * sizeof bits, sizeof bits);
    out[i] = widen(bits);
  }
}

template <uint16_t (*narrow)(float)>
void encode_halves(std::span<const float> values, std::span<std::byte> out) {
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = narrow(values[i]);
    std::memcpy(out.data() + i * sizeof bits, &bits, sizeof bits);
  }
}

void check(DType dtype, size_t elements, size_t bytes) {
  if (!is_floating(dtype)) throw Error("weights must be F32, F16 or BF16, not " + std::string(name_of(dtype)));
  if (bytes != elements * static_cast<size_t>(size_of(dtype))) throw Error("elements and bytes do not agree");
}

}  // namespace

bool is_floating(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

void decode_elements(std::span<const std::byte> bytes, DType dtype, std::span<float> out) {
  check(dtype, out.size(), bytes.size());
  if (dtype == DType::f32 && !out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  if (dtype == DType::bf16) decode_halves<bf16_to_f32>(bytes, out);
  if (dtype == DType::f16) decode_halves<f16_to_f32>(bytes, out);
}

void encode_elements(std::span<const float> values, DType dtype, std::span<std::byte> out) {
  check(dtype, values.size(), out.size());
  if (dtype == DType::f32 && !values.empty()) std::memcpy(out.data(), values.data(), out.size());
  if (dtype == DType::bf16) encode_halves<f32_to_bf16>(values, out);
  if (dtype == DType::f16) encode_halves<f32_to_f16>(values, out);
}

}  // namespace snug
