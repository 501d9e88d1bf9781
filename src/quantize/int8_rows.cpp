#include "quantize/int8_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/error.h"
#include "base/float16.h"
#include "quantize/clones.h"

namespace snug {

namespace {

void check_row_sizes(int64_t elements, int64_t columns, size_t codes, size_t absmax) {
  if (columns < 1 || elements % columns != 0) throw Error(fmt::format("{} elements are not rows of {}", elements, columns));
  if (static_cast<int64_t>(codes) != elements) throw Error("int8 codes and elements do not agree");
  if (static_cast<int64_t>(absmax) != elements / columns) throw Error("rows and absmax do not agree");
}

// Part of a row as fp16 has it. Throws Error.
void read_halves(const Values& values, int64_t begin, std::span<float> out) {
  widen(values, begin, out);
  if (!std::isfinite(absmax_of(out))) refuse_non_finite(out, values, begin);
  if (values.dtype == DType::f16) return;
  std::transform(out.begin(), out.end(), out.begin(), [](float value) { return f16_to_f32(f32_to_f16(value)); });
  const auto bad = std::find_if(out.begin(), out.end(), [](float value) { return std::isinf(value); });
  if (bad != out.end())
    throw Error(fmt::format("element {} is too large for float16", values.first + begin + (bad - out.begin())),
                std::string(values.where), "8-bit rows are computed from float16: quantize to 4 bits instead");
}

// Adding and taking off 1.5 · 2^23 rounds to nearest even.
SNUG_CLONES void round_to_codes(const float* values, float scale, int8_t* codes, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float rounded = values[i] * scale + 0x1.8p23F;
    codes[i] = static_cast<int8_t>(static_cast<int32_t>(rounded - 0x1.8p23F));
  }
}

// Calls `use(begin, count)` for the pieces of a row that starts at element `row_begin`.
template <class Use>
void for_pieces(int64_t row_begin, int64_t columns, Use use) {
  for (int64_t at = 0; at < columns; at += kPiece) use(row_begin + at, std::min(kPiece, columns - at));
}

}  // namespace

void quantize_int8_rows(const Values& values, int64_t columns, std::span<int8_t> codes, std::span<float> absmax) {
  check_values(values.bytes, values.dtype);
  check_row_sizes(values.count(), columns, codes.size(), absmax.size());
  std::array<float, kPiece> buffer;
  for (size_t row = 0; row < absmax.size(); ++row) {
    const int64_t row_begin = static_cast<int64_t>(row) * columns;
    float greatest = 0;
    for_pieces(row_begin, columns, [&](int64_t begin, int64_t count) {
      const std::span<float> piece = std::span(buffer).first(static_cast<size_t>(count));
      read_halves(values, begin, piece);
      greatest = std::max(greatest, absmax_of(piece));
    });
    absmax[row] = greatest;
    const float scale = greatest == 0 ? 0.0F : 1.0F / greatest * 127.0F;  // as PyTorch computes 127.0 / tensor
    for_pieces(row_begin, columns, [&](int64_t begin, int64_t count) {
      if (columns > kPiece) read_halves(values, begin, std::span(buffer).first(static_cast<size_t>(count)));
      round_to_codes(buffer.data(), scale, codes.data() + begin, count);
    });
  }
}

void dequantize_int8_rows(std::span<const int8_t> codes, int64_t columns, std::span<const float> absmax,
                          const ValuesOut& out) {
  check_values(out.bytes, out.dtype);
  check_row_sizes(out.count(), columns, codes.size(), absmax.size());
  constexpr float kOneOver127 = 7.874015718698502e-3F;
  std::array<float, kPiece> buffer;
  for (size_t row = 0; row < absmax.size(); ++row) {
    for_pieces(static_cast<int64_t>(row) * columns, columns, [&](int64_t begin, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        buffer[static_cast<size_t>(i)] =
            static_cast<float>(codes[static_cast<size_t>(begin + i)]) * absmax[row] * kOneOver127;
      narrow(std::span<const float>(buffer).first(static_cast<size_t>(count)), out, begin);
    });
  }
}

}  // namespace snug
