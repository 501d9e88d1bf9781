// The lanes' conversions between f16 and fp32, seen through an embedding, which does nothing else, and the scalar ones.

#include <numeric>

#include "base/error.h"
#include "kernels/row_reference.h"

namespace snug::kernels::testing {
namespace {

constexpr int64_t kHalves = 1 << 16;

// Copies `in` to `out` by way of an embedding of one row.
void convert(const Operand& in, Operand& out) {
  const int32_t id = 0;
  embedding({.table = in.in(), .ids = &id, .out = out.out(), .rows = 1, .cols = in.elements(), .vocabulary = 1, .cut = {}});
}

// What the bits of a half say, by the formula of IEEE 754.
double meaning_of(uint32_t half) {
  const double sign = (half & 0x8000U) != 0 ? -1.0 : 1.0;
  const auto exponent = static_cast<int>(half >> 10 & 31U);
  const double mantissa = half & 1023U;
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25));
}

// The half nearest to a magnitude, ties to even, found among all halves; halves[i] is what i means, infinity stands for
// 2^16.
uint16_t nearest(const std::vector<double>& halves, double magnitude) {
  const auto above = static_cast<size_t>(std::upper_bound(halves.begin(), halves.end(), magnitude) - halves.begin());
  if (above == halves.size()) return 0x7c00;
  const double up = halves[above] - magnitude, down = magnitude - halves[above - 1];
  return static_cast<uint16_t>(up < down || (up == down && above % 2 == 0) ? above : above - 1);
}

TEST(Float16, EveryHalfWidensExactly) {
  on_every_target([](const std::string& name) {
    Operand narrow(kHalves, DType::f16), wide(kHalves, DType::f32);
    auto* const bits = static_cast<uint16_t*>(narrow.data());
    std::iota(bits, bits + kHalves, uint16_t{0});
    convert(narrow, wide);
    for (uint32_t i = 0; i < kHalves; ++i) {
      const double expected = meaning_of(i);
      const float vector = wide.f32()[i], scalar = f16_to_f32(static_cast<uint16_t>(i));
      ASSERT_EQ(std::isnan(vector), std::isnan(expected)) << name << std::hex << " 0x" << i;
      ASSERT_EQ(std::isnan(scalar), std::isnan(expected)) << std::hex << " 0x" << i;
      if (std::isnan(expected)) continue;
      ASSERT_EQ(vector, expected) << name << std::hex << " 0x" << i;
      ASSERT_EQ(scalar, expected) << std::hex << " 0x" << i;
      ASSERT_EQ(std::signbit(vector), (i & 0x8000U) != 0) << name;
    }
  });
}

TEST(Float16, EveryHalfComesBackAsItWas) {
  on_every_target([](const std::string& name) {
    Operand first(kHalves, DType::f16), wide(kHalves, DType::f32), second(kHalves, DType::f16);
    auto* const bits = static_cast<uint16_t*>(first.data());
    std::iota(bits, bits + kHalves, uint16_t{0});
    convert(first, wide);
    convert(wide, second);
    for (uint32_t i = 0; i < kHalves; ++i) {
      const bool is_nan = (i & 0x7fffU) > 0x7c00U;
      ASSERT_EQ(static_cast<uint16_t*>(second.data())[i], is_nan ? i | 0x200U : i) << name << std::hex << " 0x" << i;
    }
  });
}

// Between any two neighbours: the tie, a little less and more, and a random number; and what is far outside.
TEST(Float16, EveryNumberIsRoundedToTheNearestHalfOnTiesToTheEvenOne) {
  std::vector<double> halves(0x7c01);
  for (uint32_t i = 0; i < 0x7c00; ++i) halves[i] = meaning_of(i);
  halves[0x7c00] = 65536.0;
  std::vector<float> numbers = {0x1p-25F,   0x1.000002p-25F, 0x1p-26F, 0x1p-126F, 0x1p-149F,
                                65519.996F, 65520.0F,        1e30F,    INFINITY};
  const Philox philox{.seed = 3};
  for (size_t i = 0; i < 0x7c00; ++i) {
    const auto tie = static_cast<float>((halves[i] + halves[i + 1]) / 2);
    const double share = (philox.words(i)[0] % 1000) / 1000.0;
    for (const float number : {tie, std::nextafter(tie, 0.0F), std::nextafter(tie, INFINITY),
                               static_cast<float>(halves[i] + share * (halves[i + 1] - halves[i]))})
      numbers.push_back(number);
  }
  for (size_t i = 0, n = numbers.size(); i < n; ++i) numbers.push_back(-numbers[i]);
  std::vector<uint16_t> expected;
  for (const float number : numbers) {
    const auto sign = static_cast<uint16_t>(std::signbit(number) ? 0x8000 : 0);
    expected.push_back(static_cast<uint16_t>(sign | nearest(halves, std::abs(static_cast<double>(number)))));
    ASSERT_EQ(f32_to_f16(number), expected.back()) << number;
  }
  on_every_target([&](const std::string& name) {
    const auto count = static_cast<int64_t>(numbers.size());
    Operand wide(count, DType::f32), narrow(count, DType::f16);
    std::copy(numbers.begin(), numbers.end(), wide.f32());
    convert(wide, narrow);
    for (size_t i = 0; i < numbers.size(); ++i)
      ASSERT_EQ(static_cast<uint16_t*>(narrow.data())[i], expected[i]) << name << " " << numbers[i];
  });
}

TEST(Float16, NanStaysNan) {
  on_every_target([](const std::string& name) {
    Operand wide(kHalves, DType::f32), narrow(kHalves, DType::f16);
    std::vector<uint32_t> words(kHalves);
    for (uint32_t i = 0; i < kHalves; ++i) words[i] = (i & 0x8000U) << 16 | 0x7f800001U | (i & 0x7fffU) << 8;
    std::memcpy(wide.data(), words.data(), words.size() * 4);
    convert(wide, narrow);
    for (uint32_t i = 0; i < kHalves; ++i) {
      float value = 0;
      std::memcpy(&value, &words[i], 4);
      ASSERT_EQ(static_cast<uint16_t*>(narrow.data())[i], f32_to_f16(value)) << name << std::hex << " 0x" << words[i];
    }
  });
}

TEST(Float16, IsNotMixedWithBfloat16) {
  const Operand table(random_values(8, 1), DType::f16);
  Operand out(8, DType::bf16);
  EXPECT_THROW(convert(table, out), Error);
}

}  // namespace
}  // namespace snug::kernels::testing
