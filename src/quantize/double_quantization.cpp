#include "quantize/double_quantization.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "quantize/eight_bit.h"

namespace snug {

float nested_offset(std::span<const float> absmax) {
  double sum = 0;
  for (const float value : absmax) sum += value;
  return absmax.empty() ? 0.0F : static_cast<float>(sum / static_cast<double>(absmax.size()));
}

void quantize_absmax(std::span<const float> absmax, float offset, std::span<uint8_t> codes, std::span<float> nested_absmax) {
  const auto elements = static_cast<int64_t>(absmax.size());
  if (codes.size() != absmax.size() || static_cast<int64_t>(nested_absmax.size()) != block_count(elements, kNestedBlockSize))
    throw Error("absmax and their codes do not agree");
  std::array<float, kNestedBlockSize> rest;
  for (int64_t begin = 0; begin < elements; begin += kNestedBlockSize) {
    const auto first = static_cast<size_t>(begin), count = static_cast<size_t>(std::min(kNestedBlockSize, elements - begin));
    for (size_t i = 0; i < count; ++i) rest[i] = absmax[first + i] - offset;
    const Values values{std::as_bytes(std::span(rest).first(count)), DType::f32, begin, "absmax"};
    quantize_8bit(DynamicMap::of_signed(), kNestedBlockSize, values, codes.subspan(first, count),
                  nested_absmax.subspan(first / kNestedBlockSize, 1));
  }
}

void dequantize_absmax(std::span<const float, 256> map, int64_t block_size, std::span<const uint8_t> codes,
                       std::span<const float> nested_absmax, float offset, std::span<float> absmax) {
  dequantize_8bit(map, block_size, codes, nested_absmax, {std::as_writable_bytes(absmax), DType::f32});
  for (float& value : absmax) value += offset;
}

}  // namespace snug
