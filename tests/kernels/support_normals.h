#pragma once
// Normal numbers of a stream, drawn once for a program: tests ask for the same ones for each shape and dtype, and drawing
// them anew was two thirds of what products took under sanitizers.

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/philox.h"

namespace snug::tests {

// The first `count` of them.
inline std::span<const float> normals(uint64_t seed, uint64_t stream, int64_t count) {
  static std::map<std::pair<uint64_t, uint64_t>, std::vector<float>> drawn;
  std::vector<float>& numbers = drawn[{seed, stream}];
  const Philox random{.seed = seed, .stream = stream};
  while (static_cast<int64_t>(numbers.size()) < count) numbers.push_back(random.normal(numbers.size()));
  return std::span(numbers).first(static_cast<size_t>(count));
}

}  // namespace snug::tests
