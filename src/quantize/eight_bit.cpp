#include "quantize/eight_bit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace snug {

namespace {

void check_sizes(int64_t block_size, int64_t elements, size_t codes, size_t absmax) {
  check_block_size(block_size);
  if (static_cast<int64_t>(codes) != elements) throw Error("8-bit codes and elements do not agree");
  if (static_cast<int64_t>(absmax) != block_count(elements, block_size)) throw Error("blocks and absmax do not agree");
}

}  // namespace

void quantize_8bit(const DynamicMap& map, int64_t block_size, const Values& values, std::span<uint8_t> codes,
                   std::span<float> absmax) {
  check_values(values.bytes, values.dtype);
  const int64_t elements = values.count();
  check_sizes(block_size, elements, codes.size(), absmax.size());

  std::array<float, kPiece> buffer;
  for (int64_t begin = 0; begin < elements; begin += block_size) {
    const std::span<float> block(buffer.data(), static_cast<size_t>(std::min(block_size, elements - begin)));
    widen(values, begin, block);
    const float greatest = absmax_of(block);
    if (!std::isfinite(greatest)) refuse_non_finite(block, values, begin);
    absmax[static_cast<size_t>(begin / block_size)] = greatest;
    uint8_t* const out = codes.data() + begin;
    const float scale = scale_to_one(block, greatest);
    if (greatest == 0) {
      std::fill_n(out, block.size(), uint8_t{0});
      continue;
    }
    for (size_t i = 0; i < block.size(); ++i) out[i] = map.nearest(block[i] * scale);
  }
}

void dequantize_8bit(std::span<const float, 256> map, int64_t block_size, std::span<const uint8_t> codes,
                     std::span<const float> absmax, const ValuesOut& out) {
  check_values(out.bytes, out.dtype);
  const int64_t elements = out.count();
  check_sizes(block_size, elements, codes.size(), absmax.size());

  std::array<float, kPiece> buffer;
  for (int64_t begin = 0; begin < elements; begin += block_size) {
    const std::span<float> block(buffer.data(), static_cast<size_t>(std::min(block_size, elements - begin)));
    const float scale = absmax[static_cast<size_t>(begin / block_size)];
    for (size_t i = 0; i < block.size(); ++i) block[i] = map[codes[static_cast<size_t>(begin) + i]] * scale;
    narrow(block, out, begin);
  }
}

}  // namespace snug
