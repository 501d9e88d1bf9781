#include "generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/philox.h"

namespace snug {

namespace {

// Uniform in [0, 1), 53 bits.
double uniform(uint64_t seed, uint64_t stream, uint64_t index) {
  const auto words = Philox{.seed = seed, .stream = stream}.words(index);
  const uint64_t bits = (uint64_t{words[0]} << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1.0p-53;
}

}  // namespace

int32_t Sampler::pick(std::span<float> logits, uint64_t stream, uint64_t index) {
  for (const float logit : logits)
    if (std::isnan(logit)) throw Error("the model's logits are not numbers", "", "check the weights, or run without --bf16");
  if (sampling_.temperature <= 0) return best(logits);
  if (softcap_ > 0)
    for (float& logit : logits) logit = static_cast<float>(softcap_ * std::tanh(static_cast<double>(logit) / softcap_));
  std::iota(order_.begin(), order_.end(), 0);
  int64_t count = keep_most_likely(logits);
  // From here on weights: exp of the logits' distance to the highest.
  const double highest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  for (int64_t i = 0; i < count; ++i) {
    float& logit = logits[static_cast<size_t>(order_[static_cast<size_t>(i)])];
    logit = static_cast<float>(std::exp((static_cast<double>(logit) - highest) / sampling_.temperature));
  }
  if (sampling_.top_p < 1) count = keep_nucleus(logits, count);
  double total = 0;
  for (int64_t i = 0; i < count; ++i)
    total += static_cast<double>(logits[static_cast<size_t>(order_[static_cast<size_t>(i)])]);
  double left = uniform(sampling_.seed, stream, index) * total;
  int32_t last = order_[0];
  for (int64_t i = 0; i < count; ++i) {
    const int32_t token = order_[static_cast<size_t>(i)];
    const auto weight = static_cast<double>(logits[static_cast<size_t>(token)]);
    if (weight <= 0) continue;
    last = token;
    left -= weight;
    if (left < 0) break;
  }
  return last;  // the last of all where sums of many small numbers end early
}

int32_t Sampler::best(std::span<const float> logits) const {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// The first `count` of order_ are what is kept so far; its first `first` become the highest of them, in order.
void Sampler::sort_first(std::span<const float> values, int64_t count, int64_t first) {
  const auto higher = [&](int32_t a, int32_t b) {
    const float x = values[static_cast<size_t>(a)], y = values[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  };
  if (first < count) std::nth_element(order_.begin(), order_.begin() + first, order_.begin() + count, higher);
  std::sort(order_.begin(), order_.begin() + first, higher);
}

int64_t Sampler::keep_most_likely(std::span<const float> logits) {
  const auto all = static_cast<int64_t>(logits.size());
  const int64_t k = sampling_.top_k;
  if (k <= 0 || k >= all) return all;
  sort_first(logits, all, k);
  return k;
}

// Most distributions have few likely tokens: sorts the first hundreds, and more only where they do not suffice.
int64_t Sampler::keep_nucleus(std::span<const float> weights, int64_t count) {
  double total = 0;
  for (int64_t i = 0; i < count; ++i)
    total += static_cast<double>(weights[static_cast<size_t>(order_[static_cast<size_t>(i)])]);
  for (int64_t sorted = std::min<int64_t>(count, 256);; sorted = std::min(count, sorted * 8)) {
    sort_first(weights, count, sorted);
    double sum = 0;
    for (int64_t i = 0; i < sorted; ++i) {
      sum += static_cast<double>(weights[static_cast<size_t>(order_[static_cast<size_t>(i)])]);
      if (sum >= sampling_.top_p * total) return i + 1;
    }
    if (sorted == count) return count;
  }
}

}  // namespace snug
