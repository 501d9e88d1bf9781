#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/float16.h"
#include "quantize/eight_bit.h"
#include "quantize/int8_rows.h"

namespace snug {
namespace {

template <class Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Int8Rows, rows_longer_than_a_piece_are_quantized_as_their_definition_says) {
  constexpr int64_t kColumns = 2 * kPiece + 77;
  std::vector<float> values(3 * kColumns);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] =
        f16_to_f32(f32_to_f16(std::sin(static_cast<float>(i % 1000) * 0.37F) * (1.0F + static_cast<float>(i) * 1e-3F)));
  std::vector<int8_t> codes(values.size());
  std::vector<float> absmax(3);
  quantize_int8_rows({std::as_bytes(std::span(values))}, kColumns, codes, absmax);
  for (size_t row = 0; row < 3; ++row) {
    float greatest = 0;
    for (size_t i = 0; i < kColumns; ++i) greatest = std::max(greatest, std::fabs(values[row * kColumns + i]));
    ASSERT_EQ(absmax[row], greatest);
    for (size_t i = 0; i < kColumns; ++i)
      ASSERT_EQ(codes[row * kColumns + i], std::nearbyint(values[row * kColumns + i] * (1.0F / greatest * 127.0F)))
          << row << ", " << i;
  }
}

TEST(Int8Rows, ties_go_to_the_even_code_and_zeros_stay) {
  const std::vector<float> values = {127, 0.5F, 1.5F, -2.5F, -127, 126.5F, 0, 0, 0, 0, 0, 0};
  std::vector<int8_t> codes(12);
  std::vector<float> absmax(2);
  quantize_int8_rows({std::as_bytes(std::span(values))}, 6, codes, absmax);
  EXPECT_EQ(codes, (std::vector<int8_t>{127, 0, 2, -2, -127, 126, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(absmax, (std::vector<float>{127, 0}));
}

TEST(Int8Rows, what_float16_cannot_hold_is_refused) {
  std::vector<float> values = {1, 2, 65520, 3};
  std::vector<int8_t> codes(4);
  std::vector<float> absmax(2);
  const auto quantize = [&] {
    quantize_int8_rows({std::as_bytes(std::span(values)), DType::f32, 8, "w"}, 2, codes, absmax);
  };
  EXPECT_EQ(refusal(quantize),
            "w: element 10 is too large for float16 (8-bit rows are computed from float16: quantize to 4 bits instead)");
  values[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refusal(quantize), "w: element 11 is not a number (only finite numbers can be quantized)");
  values = {1, 2, 65519, 3};
  EXPECT_EQ(refusal(quantize), "accepted");
  EXPECT_EQ(absmax[1], 65504);
}

TEST(Int8Rows, sizes_that_disagree_are_refused) {
  const std::vector<float> values(6, 1.0F);
  std::vector<int8_t> codes(6);
  std::vector<float> absmax(2);
  const Values six{std::as_bytes(std::span(values))};
  EXPECT_THROW(quantize_int8_rows(six, 4, codes, absmax), Error);
  EXPECT_THROW(quantize_int8_rows(six, 0, codes, absmax), Error);
  EXPECT_THROW(quantize_int8_rows(six, 2, codes, absmax), Error);
  EXPECT_THROW(quantize_int8_rows(six, 3, std::span(codes).first(5), absmax), Error);
}

TEST(EightBit, subnormal_blocks_have_the_codes_of_the_same_block_at_any_scale) {
  std::vector<float> values;
  for (int i = 0; i < 100; ++i) values.push_back(static_cast<float>((i * 37) % 127 - 63));
  std::vector<uint8_t> codes(100), expected(100);
  std::vector<float> absmax(2);
  quantize_8bit(DynamicMap::of_signed(), 64, {std::as_bytes(std::span(values))}, expected, absmax);
  for (float& value : values) value = std::ldexp(value, -149);
  quantize_8bit(DynamicMap::of_signed(), 64, {std::as_bytes(std::span(values))}, codes, absmax);
  EXPECT_EQ(codes, expected);
}

TEST(EightBit, what_is_not_finite_or_does_not_fit_is_refused) {
  std::vector<float> values(100, 1.0F);
  std::vector<uint8_t> codes(100);
  std::vector<float> absmax(2);
  const Values hundred{std::as_bytes(std::span(values)), DType::f32, 0, "m"};
  const auto quantize = [&](int64_t block) { quantize_8bit(DynamicMap::of_signed(), block, hundred, codes, absmax); };
  EXPECT_EQ(refusal([&] { quantize(64); }), "accepted");
  EXPECT_EQ(refusal([&] { quantize(32); }), "blocks and absmax do not agree");
  EXPECT_NE(refusal([&] { quantize(100); }).find("block size 100"), std::string::npos);
  values[99] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(refusal([&] { quantize(64); }), "m: element 99 is infinite (only finite numbers can be quantized)");
}

}  // namespace
}  // namespace snug
