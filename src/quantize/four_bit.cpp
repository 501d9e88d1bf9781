#include "quantize/four_bit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "quantize/clones.h"

namespace snug {

namespace {

constexpr std::array<float, 16> kNf4 = {-1.0F,
                                        -0.6961928009986877F,
                                        -0.5250730514526367F,
                                        -0.39491748809814453F,
                                        -0.28444138169288635F,
                                        -0.18477343022823334F,
                                        -0.09105003625154495F,
                                        0.0F,
                                        0.07958029955625534F,
                                        0.16093020141124725F,
                                        0.24611230194568634F,
                                        0.33791524171829224F,
                                        0.44070982933044434F,
                                        0.5626170039176941F,
                                        0.7229568362236023F,
                                        1.0F};

// A sign bit over 2 bits of exponent and one of mantissa, in twelfths: 0, 1/16, 8, 12, 4, 6, 2, 3.
constexpr std::array<float, 16> kFp4 = {
    0.0F, 0.0625F / 12.0F,  8.0F / 12.0F,  1.0F,  4.0F / 12.0F,  0.5F,  2.0F / 12.0F,  0.25F,
    0.0F, -0.0625F / 12.0F, -8.0F / 12.0F, -1.0F, -4.0F / 12.0F, -0.5F, -2.0F / 12.0F, -0.25F};

// A code, or for FP4 the rank of a magnitude, is the number of these below the value.
constexpr std::array<float, 15> kNf4Thresholds = {
    -0.8480964004993439F,  -0.6106329262256622F,   -0.4599952697753906F, -0.33967943489551544F, -0.23460740596055984F,
    -0.13791173323988914F, -0.045525018125772476F, 0.03979014977812767F, 0.1202552504837513F,   0.2035212516784668F,
    0.2920137718319893F,   0.3893125355243683F,    0.5016634166240692F,  0.6427869200706482F,   0.8614784181118011F};
constexpr std::array<float, 7> kFp4Thresholds = {0.00260417F, 0.0859375F, 0.20833333F, 0.29166667F,
                                                 0.4166667F,  0.583333F,  0.8333333F};

// One byte for each code. The inner loops are unrolled, the outer ones vectorised.
SNUG_CLONES void encode_nf4(const float* values, float scale, uint8_t* codes, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = values[i] * scale;
    int32_t code = 0;
    for (const float threshold : kNf4Thresholds) code += value > threshold ? 1 : 0;
    codes[i] = static_cast<uint8_t>(code);
  }
}

SNUG_CLONES void encode_fp4(const float* values, float scale, uint8_t* codes, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = values[i] * scale;
    int32_t rank = 0;
    for (const float threshold : kFp4Thresholds) rank += std::fabs(value) > threshold ? 1 : 0;
    const int32_t magnitude = rank ^ ((rank & 2) << 1);  // 0, 1, 6, 7, 4, 5, 2, 3
    codes[i] = static_cast<uint8_t>(magnitude | (value < 0 ? 8 : 0));
  }
}

SNUG_CLONES void pack_pairs(const uint8_t* codes, uint8_t* packed, int64_t bytes) {
  for (int64_t i = 0; i < bytes; ++i) packed[i] = static_cast<uint8_t>(codes[2 * i] << 4 | codes[2 * i + 1]);
}

struct Pair {
  float first, second;
};
using Pairs = std::array<Pair, 256>;  // what a byte stands for

constexpr Pairs pairs_of(const std::array<float, 16>& values) {
  Pairs pairs{};
  for (size_t byte = 0; byte < 256; ++byte) pairs[byte] = {values[byte >> 4], values[byte & 15]};
  return pairs;
}

constexpr std::array<float, 16> with_negative_zero(std::array<float, 16> values) {
  values[8] = -0.0F;  // as the kernels have it; the checkpoint's map says 0
  return values;
}

constexpr Pairs kNf4Pairs = pairs_of(kNf4);
constexpr Pairs kFp4Pairs = pairs_of(with_negative_zero(kFp4));

void check_sizes(const FourBitFormat& format, int64_t elements, size_t codes, size_t absmax) {
  check_block_size(format.block_size);
  if (static_cast<int64_t>(codes) != packed_bytes(elements)) throw Error("4-bit codes and elements do not agree");
  if (static_cast<int64_t>(absmax) != block_count(elements, format.block_size))
    throw Error("blocks and absmax do not agree");
}

}  // namespace

std::span<const float, 16> values_of(FourBit type) { return type == FourBit::nf4 ? kNf4 : kFp4; }

void quantize_4bit(const FourBitFormat& format, const Values& values, std::span<uint8_t> codes, std::span<float> absmax) {
  check_values(values.bytes, values.dtype);
  const int64_t elements = values.count();
  check_sizes(format, elements, codes.size(), absmax.size());
  const auto encode = format.type == FourBit::nf4 ? encode_nf4 : encode_fp4;
  const uint8_t zero = format.type == FourBit::nf4 ? 7 : 0;

  std::array<float, kPiece> piece;
  std::array<uint8_t, kPiece + 1> piece_codes;
  for (int64_t begin = 0; begin < elements; begin += kPiece) {
    const int64_t count = std::min(kPiece, elements - begin);
    widen(values, begin, std::span(piece).first(static_cast<size_t>(count)));
    for (int64_t at = 0; at < count; at += format.block_size) {
      const std::span<float> block(piece.data() + at, static_cast<size_t>(std::min(format.block_size, count - at)));
      const float greatest = absmax_of(block);
      if (!std::isfinite(greatest)) refuse_non_finite(block, values, begin + at);
      absmax[static_cast<size_t>((begin + at) / format.block_size)] = greatest;
      encode(block.data(), scale_to_one(block, greatest), piece_codes.data() + at, static_cast<int64_t>(block.size()));
    }
    piece_codes[static_cast<size_t>(count)] = zero;
    pack_pairs(piece_codes.data(), codes.data() + begin / 2, packed_bytes(count));
  }
}

void dequantize_4bit(const FourBitFormat& format, std::span<const uint8_t> codes, std::span<const float> absmax,
                     const ValuesOut& out) {
  check_values(out.bytes, out.dtype);
  const int64_t elements = out.count();
  check_sizes(format, elements, codes.size(), absmax.size());
  const Pairs& pairs = format.type == FourBit::nf4 ? kNf4Pairs : kFp4Pairs;

  std::array<float, kPiece> piece;
  for (int64_t begin = 0; begin < elements; begin += kPiece) {
    const int64_t count = std::min(kPiece, elements - begin);
    const uint8_t* packed = codes.data() + begin / 2;
    for (int64_t at = 0; at < count; at += format.block_size) {
      const float scale = absmax[static_cast<size_t>((begin + at) / format.block_size)];
      const int64_t end = std::min(at + format.block_size, count);
      for (int64_t i = at; i < end; i += 2) {  // an odd end writes one element too many, still within the piece
        const Pair pair = pairs[packed[i / 2]];
        piece[static_cast<size_t>(i)] = pair.first * scale;
        piece[static_cast<size_t>(i) + 1] = pair.second * scale;
      }
    }
    narrow(std::span<const float>(piece).first(static_cast<size_t>(count)), out, begin);
  }
}

}  // namespace snug
