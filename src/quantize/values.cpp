#include "quantize/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "base/bfloat16.h"
#include "base/error.h"
#include "base/float16.h"
#include "quantize/clones.h"

namespace snug {

namespace {

using Halves = std::array<uint16_t, kPiece>;

SNUG_CLONES void widen_bf16(const uint16_t* halves, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = bf16_to_f32(halves[i]);
}

// Without branches, so that it is vectorised: shifted into place, a half is a float 2^-112 too small, subnormal or not.
SNUG_CLONES void widen_f16(const uint16_t* halves, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t half = halves[i], magnitude = (half & 0x7fffU) << 13;
    const auto scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
    const uint32_t special = (half & 0x7c00U) == 0x7c00U ? 0x7f800000U : 0U;
    out[i] = std::bit_cast<float>(scaled | special | ((half & 0x8000U) << 16));
  }
}

SNUG_CLONES void narrow_bf16(const float* values, uint16_t* halves, int64_t count) {
  for (int64_t i = 0; i < count; ++i) halves[i] = f32_to_bf16(values[i]);
}

void narrow_f16(const float* values, uint16_t* halves, int64_t count) {
  for (int64_t i = 0; i < count; ++i) halves[i] = f32_to_f16(values[i]);
}

SNUG_CLONES int32_t greatest_bits(const float* values, int64_t count) {
  int32_t greatest = 0;
  for (int64_t i = 0; i < count; ++i)
    greatest = std::max(greatest, static_cast<int32_t>(std::bit_cast<uint32_t>(values[i]) & 0x7fffffffU));
  return greatest;
}

}  // namespace

void check_block_size(int64_t block_size) {
  if (block_size < 32 || block_size > kPiece || !std::has_single_bit(static_cast<uint64_t>(block_size)))
    throw Error(fmt::format("block size {}", block_size), {},
                "bitsandbytes' are 32, 64, 128, 256, 512, 1024, 2048 and 4096");
}

void check_values(std::span<const std::byte> bytes, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::f16)
    throw Error(fmt::format("{} cannot be quantized", name_of(dtype)), {}, "it takes float32, bfloat16 or float16");
  if (static_cast<int64_t>(bytes.size()) % size_of(dtype) != 0) throw Error("elements and bytes do not agree");
}

void widen(const Values& values, int64_t begin, std::span<float> out) {
  const auto width = static_cast<size_t>(size_of(values.dtype));
  const std::span<const std::byte> bytes = values.bytes.subspan(static_cast<size_t>(begin) * width, out.size() * width);
  if (bytes.empty()) return;
  if (values.dtype == DType::f32) {
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return;
  }
  Halves halves;
  std::memcpy(halves.data(), bytes.data(), bytes.size());
  const auto count = static_cast<int64_t>(out.size());
  values.dtype == DType::bf16 ? widen_bf16(halves.data(), out.data(), count) : widen_f16(halves.data(), out.data(), count);
}

void narrow(std::span<const float> values, const ValuesOut& out, int64_t begin) {
  const auto width = static_cast<size_t>(size_of(out.dtype));
  const std::span<std::byte> bytes = out.bytes.subspan(static_cast<size_t>(begin) * width, values.size() * width);
  if (bytes.empty()) return;
  if (out.dtype == DType::f32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return;
  }
  Halves halves;
  const auto count = static_cast<int64_t>(values.size());
  out.dtype == DType::bf16 ? narrow_bf16(values.data(), halves.data(), count)
                           : narrow_f16(values.data(), halves.data(), count);
  std::memcpy(bytes.data(), halves.data(), bytes.size());
}

float absmax_of(std::span<const float> block) {
  return std::bit_cast<float>(greatest_bits(block.data(), static_cast<int64_t>(block.size())));
}

void refuse_non_finite(std::span<const float> block, const Values& values, int64_t begin) {
  const auto bad = std::find_if(block.begin(), block.end(), [](float value) { return !std::isfinite(value); });
  const int64_t element = values.first + begin + (bad - block.begin());
  throw Error(fmt::format("element {} is {}", element, std::isnan(*bad) ? "not a number" : "infinite"),
              std::string(values.where), "only finite numbers can be quantized");
}

float scale_to_one(std::span<float> block, float absmax) {
  if (absmax == 0) return 0;
  if (absmax > 0x1p-128F) return 1.0F / absmax;
  for (float& value : block) value *= 0x1p64F;
  return 1.0F / (absmax * 0x1p64F);
}

}  // namespace snug
