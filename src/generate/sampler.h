#pragma once
// Sampler: the next token from a model's logits: the best one, or one drawn at a temperature from the top k and the top p
// (nucleus: Holtzman et al., "The curious case of neural text degeneration", 2020). It allocates nothing and knows no model.

#include <cstdint>
#include <span>

namespace snug {

struct Sampling {
  double temperature = 0;  // 0: the best token, always
  double top_p = 1;        // the fewest tokens whose probabilities sum to at least this
  int64_t top_k = 0;       // the k most likely alone; 0: all
  uint64_t seed = 42;
};

class Sampler {
 public:
  // `order`: room for one number a vocabulary entry. `softcap`: logits become cap * tanh(logit / cap) first; 0: they stay.
  Sampler(const Sampling& sampling, double softcap, std::span<int32_t> order)
      : sampling_(sampling), softcap_(softcap), order_(order) {}

  // The token drawn from `logits`, which are overwritten. The draw depends on seed, `stream` (which answer) and `index`
  // (which token of it) alone. Of equal logits the lowest id comes first. Throws Error if a logit is not a number.
  int32_t pick(std::span<float> logits, uint64_t stream, uint64_t index);

 private:
  int32_t best(std::span<const float> logits) const;
  int64_t keep_most_likely(std::span<const float> logits);
  int64_t keep_nucleus(std::span<const float> weights, int64_t count);
  void sort_first(std::span<const float> values, int64_t count, int64_t first);

  Sampling sampling_;
  double softcap_;
  std::span<int32_t> order_;
};

}  // namespace snug
