#include "data/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <vector>

namespace snug {
namespace {

std::vector<uint64_t> all(uint64_t n, uint64_t seed, uint64_t epoch) {
  std::vector<uint64_t> images;
  const Permutation permutation(n, seed, epoch);
  for (uint64_t i = 0; i < n; ++i) images.push_back(permutation(i));
  return images;
}

TEST(Permutation, IsABijectionForEverySize) {
  for (const uint64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 63, 64, 65, 255, 257, 1000, 4097, 65537}) {
    std::vector<bool> hit(n, false);
    for (const uint64_t image : all(n, 42, n)) {
      ASSERT_LT(image, n);
      EXPECT_FALSE(hit[image]) << n;
      hit[image] = true;
    }
  }
}

TEST(Permutation, DependsOnSeedAndEpochAlone) {
  EXPECT_EQ(all(100, 1, 2), all(100, 1, 2));
  EXPECT_NE(all(100, 1, 2), all(100, 1, 3));
  EXPECT_NE(all(100, 1, 2), all(100, 2, 2));
}

TEST(Permutation, SendsEachPlaceEverywhereAboutEquallyOften) {
  constexpr uint64_t n = 13;
  constexpr uint64_t epochs = 6500;
  std::vector<std::vector<int>> count(n, std::vector<int>(n, 0));
  for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto images = all(n, 7, epoch);
    for (uint64_t i = 0; i < n; ++i) ++count[i][images[i]];
  }
  const double expected = static_cast<double>(epochs) / n;
  for (const auto& row : count) {
    for (const int c : row) EXPECT_LT(std::abs(c - expected), 5.5 * std::sqrt(expected));
  }
}

}  // namespace
}  // namespace snug
