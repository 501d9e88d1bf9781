// Noise: its draws are Philox's on every instruction set and number of threads, and evenly spread.

#include "kernels/ops/noise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"
#include "kernels/cpu/kernels.h"
#include "kernels/row_reference.h"

namespace snug::kernels::testing {
namespace {

struct NoiseDraw {
  double step = 5, micro_batch = 2;
  uint64_t seed = 42;
};

// u of each element, as the kernel's header says it.
Values drawn_noise(const NoiseDraw& draw, int64_t elements) {
  const Philox random{draw.seed ^ 0x6e6f697365000000, static_cast<uint64_t>(draw.step)};
  Values result;
  for (int64_t i = 0; i < elements; ++i) {
    const auto index = static_cast<uint64_t>(i);
    const uint32_t word = random.words(static_cast<uint64_t>(draw.micro_batch) << 40 | index / 4)[index % 4];
    result.push_back(static_cast<double>(static_cast<int32_t>(word)) * 0x1p-31);
  }
  return result;
}

void add_noise(Operand& x, const NoiseDraw& draw, float magnitude, int32_t threads) {
  std::vector<Scalars> scalars(kScalarCount, 0.0);
  scalars[static_cast<size_t>(Scalar::step)] = draw.step;
  scalars[static_cast<size_t>(Scalar::micro_batch)] = draw.micro_batch;
  noise({.x = x.out(),
         .elements = x.elements(),
         .magnitude = magnitude,
         .seed = draw.seed,
         .scalars = scalars.data(),
         .cut = {.threads = threads}});
}

TEST(NoiseKernel, EveryInstructionSetAndNumberOfThreadsAddsTheSame) {
  on_every_target([&](const std::string& target) {
    for (const int64_t elements : {1, 5, 64, 191, 1000})
      for (const DType storage : kStorages)
        for (const int32_t threads : {1, 2, 3}) {
          const Values before = random_values(elements, 1);
          Operand x(before, storage), alone(before, storage);
          Values expected = drawn_noise({}, elements);
          for (size_t i = 0; i < expected.size(); ++i) expected[i] = before[i] + 0.25 * expected[i];
          add_noise(x, {}, 0.25F, threads);
          ASSERT_NO_FATAL_FAILURE(expect_close(x.values(), expected, tolerance_of(storage), target));
          add_noise(alone, {}, 0.25F, 1);
          ASSERT_TRUE(x.intact() && x.same_bits(alone));
        }
  });
}

TEST(NoiseKernel, IsEvenBetweenItsEndsAndIndependentOfItsNeighbours) {
  constexpr int64_t kElements = 1 << 20;
  constexpr double kMagnitude = 0.5;
  Operand x(Values(kElements, 0.0), DType::f32);
  add_noise(x, {}, kMagnitude, 2);
  double sum = 0, squares = 0, products = 0, last = 0;
  std::vector<int64_t> tenths(10);
  for (const double value : x.values()) {
    ASSERT_LE(std::abs(value), kMagnitude);
    sum += value, squares += value * value, products += value * last;
    last = value;
    ++tenths[static_cast<size_t>(std::min(9.0, std::floor(10 * (value / kMagnitude + 1) / 2)))];
  }
  const double variance = kMagnitude * kMagnitude / 3, sigmas = 5 * std::sqrt(static_cast<double>(kElements));
  EXPECT_NEAR(sum, 0, sigmas * std::sqrt(variance));
  EXPECT_NEAR(squares, variance * kElements, sigmas * kMagnitude * kMagnitude * std::sqrt(4.0 / 45));
  EXPECT_NEAR(products, 0, sigmas * variance);
  for (const int64_t count : tenths) EXPECT_NEAR(static_cast<double>(count), kElements / 10.0, sigmas * 0.3);
}

TEST(NoiseKernel, AnotherStepMicroBatchOrSeedIsAnotherNoise) {
  std::vector<Values> seen;
  for (const NoiseDraw& draw : {NoiseDraw{}, {.step = 6}, {.micro_batch = 3}, {.seed = 43}}) {
    Operand x(Values(256, 0.0), DType::f32);
    add_noise(x, draw, 1, 1);
    for (const Values& other : seen) EXPECT_NE(x.values(), other);
    seen.push_back(x.values());
  }
}

}  // namespace
}  // namespace snug::kernels::testing
