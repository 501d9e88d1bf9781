#include "quantize/four_bit.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/float16.h"
#include "quantize/double_quantization.h"

namespace snug {
namespace {

// bitsandbytes' decisions in its own words (csrc/kernels.cu).
int tree_nf4(float x) {
  if (x > 0.03979014977812767F) {
    if (x > 0.3893125355243683F) {
      if (x > 0.6427869200706482F) return x > 0.8614784181118011F ? 15 : 14;
      return x > 0.5016634166240692F ? 13 : 12;
    }
    if (x > 0.2035212516784668F) return x > 0.2920137718319893F ? 11 : 10;
    return x > 0.1202552504837513F ? 9 : 8;
  }
  if (x > -0.33967943489551544F) {
    if (x > -0.13791173323988914F) return x > -0.045525018125772476F ? 7 : 6;
    return x > -0.23460740596055984F ? 5 : 4;
  }
  if (x > -0.6106329262256622F) return x > -0.4599952697753906F ? 3 : 2;
  return x > -0.8480964004993439F ? 1 : 0;
}

int tree_fp4(float x) {
  const int sign = x < 0 ? 8 : 0;
  x = std::fabs(x);
  if (x > 0.29166667F) {
    if (x > 0.583333F) return (x > 0.8333333F ? 3 : 2) + sign;
    return (x > 0.4166667F ? 5 : 4) + sign;
  }
  if (x > 0.0859375F) return (x > 0.20833333F ? 7 : 6) + sign;
  return (x > 0.00260417F ? 1 : 0) + sign;
}

struct Quantized {
  std::vector<uint8_t> codes;  // one for each element, and one more where their number is odd
  std::vector<float> absmax;
};

Quantized quantize(FourBit type, int64_t block_size, const std::vector<float>& values) {
  const auto count = static_cast<int64_t>(values.size());
  std::vector<uint8_t> packed(static_cast<size_t>(packed_bytes(count)));
  Quantized result{{}, std::vector<float>(static_cast<size_t>(block_count(count, block_size)))};
  quantize_4bit({type, block_size}, {std::as_bytes(std::span(values))}, packed, result.absmax);
  for (const uint8_t byte : packed) {
    result.codes.push_back(byte >> 4);
    result.codes.push_back(byte & 15);
  }
  return result;
}

std::vector<float> dequantize(FourBit type, int64_t block_size, const Quantized& quantized, size_t count) {
  std::vector<uint8_t> packed;
  for (size_t i = 0; i < quantized.codes.size(); i += 2)
    packed.push_back(static_cast<uint8_t>(quantized.codes[i] << 4 | quantized.codes[i + 1]));
  std::vector<float> values(count);
  dequantize_4bit({type, block_size}, packed, quantized.absmax, {std::as_writable_bytes(std::span(values))});
  return values;
}

// Numbers in [-1, 1] after a 1 in each block of 64, so that absmax is 1: every bfloat16, then those around the thresholds.
std::vector<float> probes() {
  std::vector<float> values;
  const auto add = [&](float value) {
    if (values.size() % 64 == 0) values.push_back(1);
    values.push_back(value);
  };
  for (uint32_t high = 0; high <= 0x3f80; ++high)
    for (const uint32_t sign : {0U, 0x8000U}) add(std::bit_cast<float>((high | sign) << 16));
  std::vector<float> centres = {0.583333F, 0.5833333F};
  for (const FourBit type : {FourBit::nf4, FourBit::fp4})
    for (const float a : values_of(type))
      for (const float b : values_of(type)) centres.push_back((a + b) / 2);
  for (const float centre : centres) {
    float value = centre;
    for (int i = 0; i < 8; ++i) value = std::nextafter(value, -2.0F);
    for (int i = 0; i < 17; ++i, value = std::nextafter(value, 2.0F))
      if (std::fabs(value) <= 1) add(value);
  }
  return values;
}

TEST(FourBit, codes_are_those_of_the_cuda_kernels_trees) {
  const std::vector<float> values = probes();
  const auto nf4 = quantize(FourBit::nf4, 64, values), fp4 = quantize(FourBit::fp4, 64, values);
  int64_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i)
    wrong += (nf4.codes[i] != tree_nf4(values[i]) ? 1 : 0) + (fp4.codes[i] != tree_fp4(values[i]) ? 1 : 0);
  EXPECT_EQ(wrong, 0) << "of " << values.size();
}

TEST(FourBit, the_first_element_is_in_the_high_half_and_an_odd_end_is_filled_with_0) {
  const std::vector<float> values = {-1.0F, 1.0F, 1.0F};
  std::vector<uint8_t> packed(2);
  std::vector<float> absmax(1);
  quantize_4bit({}, {std::as_bytes(std::span(values))}, packed, absmax);
  EXPECT_EQ(packed, (std::vector<uint8_t>{0x0f, 0xf7}));
  quantize_4bit({FourBit::fp4}, {std::as_bytes(std::span(values))}, packed, absmax);
  EXPECT_EQ(packed, (std::vector<uint8_t>{0xb3, 0x30}));
}

TEST(FourBit, zeros_stay_zeros_whatever_their_absmax_became) {
  const std::vector<float> zeros(130, 0.0F);
  for (const FourBit type : {FourBit::nf4, FourBit::fp4}) {
    Quantized quantized = quantize(type, 64, zeros);
    EXPECT_EQ(quantized.absmax, std::vector<float>(3, 0.0F));
    quantized.absmax = {0.125F, -1.0F, 3.0F};  // as double quantization may give them back
    for (const float value : dequantize(type, 64, quantized, zeros.size())) EXPECT_EQ(value, 0);
  }
}

TEST(FourBit, subnormal_blocks_have_the_codes_of_the_same_block_at_any_scale) {
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(static_cast<float>((i * 37) % 127 - 63));
  for (const FourBit type : {FourBit::nf4, FourBit::fp4}) {
    const auto expected = quantize(type, 64, values).codes;
    for (const int exponent : {-149, -145, -140, -134, -130, -100, 100, 120}) {
      std::vector<float> scaled = values;
      for (float& value : scaled) value = std::ldexp(value, exponent);
      EXPECT_EQ(quantize(type, 64, scaled).codes, expected) << "times 2^" << exponent;
    }
  }
}

TEST(FourBit, the_largest_numbers_and_the_smallest_come_back) {
  const float largest = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  for (const float size : {largest, least}) {
    const std::vector<float> values = {size, -size, 0.0F};
    for (const FourBit type : {FourBit::nf4, FourBit::fp4})
      EXPECT_EQ(dequantize(type, 64, quantize(type, 64, values), 3), values);
  }
}

TEST(FourBit, whole_blocks_can_be_quantized_apart) {
  std::vector<float> values(10001);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i * i)) * 3;
  for (const int64_t block_size : {32, 64, 128, 256, 512, 1024, 2048, 4096}) {
    const Quantized whole = quantize(FourBit::nf4, block_size, values);
    const auto cut = static_cast<size_t>(block_size);
    const Quantized first = quantize(FourBit::nf4, block_size, {values.begin(), values.begin() + block_size});
    const Quantized rest = quantize(FourBit::nf4, block_size, {values.begin() + block_size, values.end()});
    EXPECT_TRUE(std::equal(first.codes.begin(), first.codes.end(), whole.codes.begin()));
    EXPECT_TRUE(std::equal(rest.codes.begin(), rest.codes.end(), whole.codes.begin() + static_cast<std::ptrdiff_t>(cut)));
    EXPECT_EQ(first.absmax[0], whole.absmax[0]);
    EXPECT_TRUE(std::equal(rest.absmax.begin(), rest.absmax.end(), whole.absmax.begin() + 1));
  }
}

TEST(FourBit, every_float16_is_widened_exactly_and_infinities_are_seen) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const auto bits = static_cast<uint16_t>(half);
    float wide = 0;
    widen({std::as_bytes(std::span(&bits, 1)), DType::f16}, 0, std::span(&wide, 1));
    if ((half & 0x7c00U) == 0x7c00U)
      ASSERT_FALSE(std::isfinite(wide)) << half;
    else
      ASSERT_EQ(wide, f16_to_f32(bits)) << half;
  }
}

TEST(FourBit, bytes_may_lie_at_odd_addresses) {
  const std::vector<float> values = {0.5F, -0.25F, 0.125F};
  std::vector<std::byte> moved(13);
  std::memcpy(moved.data() + 1, values.data(), 12);
  std::vector<uint8_t> codes(2), expected(2);
  std::vector<float> absmax(1);
  quantize_4bit({}, {std::as_bytes(std::span(values))}, expected, absmax);
  quantize_4bit({}, {std::span(moved).subspan(1)}, codes, absmax);
  EXPECT_EQ(codes, expected);
}

std::string refusal(const Values& values, const FourBitFormat& format = {}) {
  std::vector<uint8_t> codes(static_cast<size_t>(packed_bytes(values.count())));
  std::vector<float> absmax(static_cast<size_t>(block_count(values.count(), 64)));
  try {
    quantize_4bit(format, values, codes, absmax);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(FourBit, what_is_not_finite_is_refused_with_its_element) {
  std::vector<float> values(5000, 1.0F);
  values[4321] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(refusal({std::as_bytes(std::span(values)), DType::f32, 1000, "a.safetensors: w"}),
            "a.safetensors: w: element 5321 is infinite (only finite numbers can be quantized)");
  values[70] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refusal({std::as_bytes(std::span(values))}),
            "element 70 is not a number (only finite numbers can be quantized)");
  const std::vector<uint16_t> halves = {0x3c00, 0x7c00};
  EXPECT_EQ(refusal({std::as_bytes(std::span(halves)), DType::f16}),
            "element 1 is infinite (only finite numbers can be quantized)");
}

TEST(FourBit, sizes_and_dtypes_that_cannot_be_are_refused) {
  const std::vector<float> values(64, 1.0F);
  const Values good{std::as_bytes(std::span(values))};
  for (const int64_t block_size : {-64, 0, 1, 16, 63, 96, 8192})
    EXPECT_NE(refusal(good, {FourBit::nf4, block_size}).find("block size"), std::string::npos) << block_size;
  EXPECT_NE(refusal({good.bytes, DType::i32}).find("int32 cannot be quantized"), std::string::npos);
  std::vector<uint8_t> codes(32);
  std::vector<float> absmax(1), two(2);
  EXPECT_THROW(quantize_4bit({}, good, std::span(codes).first(31), absmax), Error);
  EXPECT_THROW(quantize_4bit({}, good, codes, two), Error);
  EXPECT_THROW(quantize_4bit({}, {good.bytes.first(255)}, codes, absmax), Error);
  std::vector<std::byte> out(256);
  EXPECT_THROW(dequantize_4bit({}, codes, two, {out}), Error);
  EXPECT_THROW(dequantize_4bit({}, std::span(codes).first(31), absmax, {out}), Error);
}

TEST(FourBit, nothing_is_quantized_to_nothing) {
  std::vector<uint8_t> codes;
  std::vector<float> absmax;
  quantize_4bit({}, {}, codes, absmax);
  dequantize_4bit({}, codes, absmax, {});
  quantize_absmax(absmax, nested_offset(absmax), codes, absmax);
}

}  // namespace
}  // namespace snug
