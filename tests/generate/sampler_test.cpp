// The distributions that are drawn from are those that transformers' warpers define, computed here from their definitions.

#include "generate/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace snug {

namespace {

const std::vector<float> kLogits = {1.0F, 3.0F, -2.0F, 2.5F, 0.0F, 2.9F, -9.0F, 1.4F};

std::vector<double> softmax(const std::vector<double>& logits) {
  std::vector<double> p;
  for (double x : logits) p.push_back(std::exp(x));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

// Probabilities by definition: temperature, then the k highest, then the fewest whose sum reaches p.
std::vector<double> exact(const Sampling& s, double softcap) {
  std::vector<double> logits(kLogits.begin(), kLogits.end());
  for (double& x : logits) x = (softcap > 0 ? softcap * std::tanh(x / softcap) : x) / s.temperature;
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  const auto drop_from = [&](size_t rank) {
    for (; rank < order.size(); ++rank) logits[order[rank]] = -1e9;
  };
  if (s.top_k > 0) drop_from(static_cast<size_t>(s.top_k));
  const std::vector<double> p = softmax(logits);
  double sum = 0;
  for (size_t rank = 0; rank < order.size() && s.top_p < 1; ++rank) {
    sum += p[order[rank]];
    if (sum >= s.top_p) {
      drop_from(rank + 1);
      break;
    }
  }
  return softmax(logits);
}

int32_t draw(const Sampling& s, uint64_t stream, uint64_t index, double softcap = 0) {
  std::vector<float> logits = kLogits;
  std::vector<int32_t> order(logits.size());
  return Sampler(s, softcap, order).pick(logits, stream, index);
}

// The chi-square statistic of 20000 draws against `p`; infinite if something impossible was drawn.
double chi_square(const Sampling& s, const std::vector<double>& p, double softcap) {
  constexpr int kDraws = 20000;
  std::vector<int> counts(p.size());
  for (int i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(draw(s, 0, static_cast<uint64_t>(i), softcap))];
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double expected = p[i] * kDraws;
    if (expected < 1e-3) {
      if (counts[i] > 0) return INFINITY;
      continue;
    }
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

constexpr double kLimit = 24.3;  // chi-square with 7 degrees of freedom exceeds it once in a thousand

struct Case {
  Sampling sampling;
  double softcap = 0;
};
const Case kCases[] = {{{.temperature = 1.0}},
                       {{.temperature = 0.7}},
                       {{.temperature = 2.0, .top_k = 3}},
                       {{.temperature = 1.0, .top_p = 0.8}},
                       {{.temperature = 1.3, .top_p = 0.6, .top_k = 5}},
                       {{.temperature = 1.0, .top_k = 1}},
                       {{.temperature = 1.0, .top_p = 1e-6}},
                       {{.temperature = 1.0, .top_k = 100}},
                       {{.temperature = 1.0}, 1.5}};

TEST(Sampler, draws_with_the_exact_probabilities) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.sampling.temperature);
    EXPECT_LT(chi_square(c.sampling, exact(c.sampling, c.softcap), c.softcap), kLimit);
  }
}

TEST(Sampler, the_test_can_fail) {
  const Sampling s{.temperature = 1.0};
  EXPECT_GT(chi_square(s, exact({.temperature = 1.1}, 0), 0), kLimit);
  EXPECT_GT(chi_square(s, exact({.temperature = 1.0, .top_p = 0.99}, 0), 0), kLimit);
  EXPECT_GT(chi_square(s, exact({.temperature = 1.0, .top_k = 6}, 0), 0), kLimit);
  EXPECT_GT(chi_square(s, exact(s, 4.0), 0), kLimit);
}

TEST(Sampler, a_nucleus_wider_than_the_first_sort_is_whole) {
  constexpr int kTokens = 3000;
  std::vector<int> seen(kTokens);
  std::vector<int32_t> order(kTokens);
  for (uint64_t i = 0; i < 4000; ++i) {
    std::vector<float> logits(kTokens);
    for (int t = 0; t < kTokens; ++t) logits[static_cast<size_t>(t)] = t < 1000 ? 1.0F : -1.0F;
    ++seen[static_cast<size_t>(Sampler({.temperature = 1.0, .top_p = 0.5}, 0, order).pick(logits, 0, i))];
  }
  EXPECT_EQ(std::count(seen.begin() + 1000, seen.end(), 0), 2000);   // 1000 e / (1000 e + 2000 / e) = 0.787
  EXPECT_LT(std::accumulate(seen.begin() + 640, seen.end(), 0), 1);  // 0.5 of all is 635.3 of the first thousand
  EXPECT_GT(std::count_if(seen.begin(), seen.begin() + 635, [](int n) { return n > 0; }), 600);
}

TEST(Sampler, temperature_0_takes_the_best_and_the_first_of_equals) {
  EXPECT_EQ(draw({.temperature = 0}, 0, 0), 1);
  std::vector<float> logits = {1, 5, 2, 5};
  std::vector<int32_t> order(4);
  EXPECT_EQ(Sampler({}, 0, order).pick(logits, 0, 0), 1);
}

TEST(Sampler, seed_stream_and_index_decide_alone) {
  const auto draws = [](uint64_t seed, uint64_t stream) {
    std::vector<int32_t> tokens;
    for (uint64_t i = 0; i < 64; ++i) tokens.push_back(draw({.temperature = 1.5, .seed = seed}, stream, i));
    return tokens;
  };
  EXPECT_EQ(draws(1, 0), draws(1, 0));
  EXPECT_NE(draws(1, 0), draws(2, 0));
  EXPECT_NE(draws(1, 0), draws(1, 1));
}

TEST(Sampler, refuses_what_is_not_a_number) {
  for (const double temperature : {0.0, 1.0}) {
    std::vector<float> logits = {1, NAN, 2};
    std::vector<int32_t> order(3);
    EXPECT_THROW(Sampler({.temperature = temperature}, 0, order).pick(logits, 0, 0), Error);
  }
}

TEST(Sampler, survives_infinite_logits) {
  std::vector<float> logits = {-INFINITY, 0, -INFINITY, 0};
  std::vector<int32_t> order(4);
  const int32_t token = Sampler({.temperature = 1.0, .top_p = 0.9}, 0, order).pick(logits, 0, 0);
  EXPECT_TRUE(token == 1 || token == 3);
}

}  // namespace

}  // namespace snug
