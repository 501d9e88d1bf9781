#include "data/buckets.h"

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "base/error.h"

namespace snug {
namespace {

constexpr int64_t kGrain = 64;
constexpr int64_t kMostSteps = 1024;  // lengths that are considered: their square is the work

}  // namespace

// Least padding by dynamic programming: best[i] is that of all rows up to length i · step with the buckets so far, of which
// the last is i.
std::vector<int64_t> choose_buckets(std::span<const int32_t> lengths, int64_t seq_len, int64_t most) {
  if (most <= 1 || lengths.empty()) return {seq_len};
  const int64_t step = align_up((align_up(seq_len, kGrain) + kMostSteps - 1) / kMostSteps, kGrain);
  const int64_t longest = *std::ranges::max_element(lengths);
  const auto steps = static_cast<size_t>((longest + step - 1) / step);
  std::vector<int64_t> rows(steps + 1, 0);  // [i]: of at most i · step tokens
  for (const int32_t length : lengths) ++rows[static_cast<size_t>((length + step - 1) / step)];
  for (size_t i = 1; i <= steps; ++i) rows[i] += rows[i - 1];
  const auto cost = [&](size_t from, size_t to) { return (rows[to] - rows[from]) * static_cast<int64_t>(to); };

  std::vector<int64_t> best(steps + 1);
  for (size_t i = 0; i <= steps; ++i) best[i] = cost(0, i);
  std::vector<std::vector<size_t>> chosen(1, std::vector<size_t>(steps + 1, 0));  // [k][i]: the bucket before i
  for (int64_t k = 1; k < most; ++k) {
    std::vector<int64_t> better = best;
    std::vector<size_t> before(steps + 1, 0);
    for (size_t i = 1; i <= steps; ++i) {
      for (size_t j = 1; j < i; ++j) {
        if (best[j] + cost(j, i) >= better[i]) continue;
        better[i] = best[j] + cost(j, i);
        before[i] = j;
      }
    }
    best = std::move(better);
    chosen.push_back(std::move(before));
  }
  std::vector<int64_t> buckets;
  size_t at = steps;
  for (size_t k = chosen.size(); k-- > 0 && at > 0;) {
    if (k > 0 && chosen[k][at] == 0) continue;  // no better with one bucket more
    buckets.push_back(std::min(static_cast<int64_t>(at) * step, seq_len));
    at = chosen[k][at];
  }
  std::ranges::reverse(buckets);
  return buckets;
}

int64_t bucket_of(std::span<const int64_t> buckets, int64_t length) {
  return std::ranges::lower_bound(buckets, length) - buckets.begin();
}

}  // namespace snug
