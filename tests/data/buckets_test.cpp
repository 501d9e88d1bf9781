#include "data/buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace snug {
namespace {

using Lengths = std::vector<int32_t>;
using Buckets = std::vector<int64_t>;

int64_t places(const Lengths& lengths, const Buckets& buckets) {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0}, [&](int64_t sum, int32_t length) {
    return sum + buckets[static_cast<size_t>(bucket_of(buckets, length))];
  });
}

// The least that any choice of `most` multiples of 64 needs, by trying all.
int64_t best_of_all(const Lengths& lengths, int64_t longest, int64_t most, Buckets chosen = {}) {
  Buckets all = chosen;
  all.push_back(longest);
  int64_t best = places(lengths, all);
  if (most == 1) return best;
  for (int64_t next = chosen.empty() ? 64 : chosen.back() + 64; next < longest; next += 64) {
    Buckets more = chosen;
    more.push_back(next);
    best = std::min(best, best_of_all(lengths, longest, most - 1, more));
  }
  return best;
}

TEST(Buckets, IsTheWholeLengthWhereThereIsOne) { EXPECT_EQ(choose_buckets(Lengths{3, 70}, 1000, 1), (Buckets{1000})); }

TEST(Buckets, AreMultiplesOf64UpToTheLongestRow) {
  EXPECT_EQ(choose_buckets(Lengths{1, 64, 65, 200}, 1000, 4), (Buckets{64, 128, 256}));
  EXPECT_EQ(choose_buckets(Lengths{1, 990}, 1000, 4), (Buckets{64, 1000}));
  EXPECT_EQ(choose_buckets(Lengths{7}, 1000, 4), (Buckets{64}));
  EXPECT_EQ(choose_buckets(Lengths{7, 20}, 24, 4), (Buckets{24}));
}

TEST(Buckets, PadAsLittleAsAnyChoiceCan) {
  uint64_t state = 1;
  for (int trial = 0; trial < 60; ++trial) {
    Lengths lengths;
    for (int i = 0; i < 40; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const auto draw = static_cast<int32_t>(state >> 40);
      lengths.push_back(1 + (i % 3 == 0 ? draw % 700 : draw % 130));
    }
    const int64_t longest = (*std::ranges::max_element(lengths) + 63) / 64 * 64;
    for (int64_t most = 1; most <= 4; ++most) {
      const Buckets buckets = choose_buckets(lengths, 768, most);
      ASSERT_LE(static_cast<int64_t>(buckets.size()), most);
      ASSERT_TRUE(std::ranges::is_sorted(buckets));
      if (most > 1) {
        EXPECT_EQ(buckets.back(), longest);
        EXPECT_EQ(places(lengths, buckets), best_of_all(lengths, longest, most));
      }
    }
  }
}

TEST(Buckets, StayFewStepsForVeryLongRows) {
  const Buckets buckets = choose_buckets(Lengths{5, 100'000, 9'000'000}, 1 << 24, 4);
  EXPECT_EQ(buckets.size(), 3U);
  EXPECT_GE(buckets.back(), 9'000'000);
  EXPECT_LE(buckets.back(), 9'000'000 + 16'384);
}

}  // namespace
}  // namespace snug
