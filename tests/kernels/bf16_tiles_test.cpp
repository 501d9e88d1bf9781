// Tiles of products in bf16, by each means that this CPU has, against sums in double precision.

#include "kernels/cpu/bf16_tiles.h"

#include <gtest/gtest.h>

#include "base/bfloat16.h"
#include "base/cpu_features.h"
#include "base/philox.h"
#include "kernels/cpu/bf16_units.h"

namespace snug {
namespace {

using kernels::kTile;
using kernels::TileFactors;

using MultiplyTile = void (*)(const TileFactors&, float*, int64_t, bool);

// Numbers in bf16 pieces, as a tile takes them, and what they stand for.
struct Pieces {
  std::vector<uint16_t> bits;
  std::vector<double> values;
  int64_t low;  // elements from the high to the low piece

  Pieces(int64_t count, bool two, uint64_t stream)
      : bits(static_cast<size_t>(two ? 2 * count : count)), low(two ? count : 0) {
    const Philox random{.seed = 5, .stream = stream};
    for (int64_t i = 0; i < count; ++i) {
      const float x = random.normal(static_cast<uint64_t>(i));
      const float high = bf16_to_f32(f32_to_bf16(x)), rest = bf16_to_f32(f32_to_bf16(x - high));
      bits[static_cast<size_t>(i)] = f32_to_bf16(high);
      if (two) bits[static_cast<size_t>(count + i)] = f32_to_bf16(rest);
      values.push_back(static_cast<double>(high) + (two ? static_cast<double>(rest) : 0.0));
    }
  }
};

void expect_sums(MultiplyTile multiply, int64_t k, bool a_in_two, bool b_in_two, bool accumulate) {
  const int64_t stride = k + 32, c_stride = 40;
  const Pieces a(kTile * stride, a_in_two, 1), b(kTile * k, b_in_two, 2);
  std::vector<float> c(static_cast<size_t>(kTile * c_stride), 0.5F);
  multiply({.a = a.bits.data(), .a_stride = stride, .a_low = a.low, .b = b.bits.data(), .b_low = b.low, .k = k}, c.data(),
           c_stride, accumulate);
  for (int64_t r = 0; r < kTile; ++r) {
    for (int64_t col = 0; col < c_stride; ++col) {
      double sum = col >= kTile || accumulate ? 0.5 : 0, size = 0;
      for (int64_t i = 0; i < k && col < kTile; ++i) {
        const double product =
            a.values[static_cast<size_t>(r * stride + i)] * b.values[static_cast<size_t>((i / 2 * kTile + col) * 2 + i % 2)];
        sum += product;
        size += std::abs(product);
      }
      // fp32 sums, and low times low, which is left out: 2^-8 of a low piece, itself 2^-9 of its number, each.
      const double relative = 0x1p-20 + (a_in_two && b_in_two ? 0x1p-16 : 0.0);
      ASSERT_NEAR(static_cast<double>(c[static_cast<size_t>(r * c_stride + col)]), sum, relative * size)
          << r << ", " << col << ", k " << k;
    }
  }
}

void expect_all(MultiplyTile multiply) {
  for (const int64_t k : {32, 64, 320})
    for (const bool a_in_two : {false, true})
      for (const bool b_in_two : {false, true})
        for (const bool accumulate : {false, true}) expect_sums(multiply, k, a_in_two, b_in_two, accumulate);
}

TEST(Bf16Tiles, the_best_unit_sums_exactly) {
  if (!multiplies_bf16()) GTEST_SKIP() << "no bf16 arithmetic here";
  const kernels::TileRegisters registers;
  expect_all(kernels::multiply_tile);
}

#if defined(__x86_64__)
TEST(Bf16Tiles, dot_products_sum_exactly) {
  if (__builtin_cpu_supports("avx512bf16") == 0) GTEST_SKIP() << "no AVX512-BF16 here";
  expect_all(kernels::avx512::multiply_tile);
}
#endif

}  // namespace
}  // namespace snug
