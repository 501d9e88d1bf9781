#pragma once
// Whether a sanitizer watches: its question is what code does with memory, not the figure that comes of repeating it.

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace snug::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// Of so many cases that are drawn alike: all, or under a sanitizer, which takes ten times as long, the first fifth.
constexpr int drawn(int cases) { return kSanitized ? cases / 5 : cases; }

// Steps of a run of so many: all, or under a sanitizer an even number of them, which run the same code.
constexpr int few_of(int steps) { return kSanitized ? (steps >= 16 ? 4 : 2) : steps; }

// Of cases that are more of the same code: all, or under a sanitizer the first of every so many.
template <class CASES>
auto thinned(const CASES& all, size_t every) {
  std::vector<typename std::iterator_traits<decltype(std::begin(all))>::value_type> kept;
  size_t index = 0;
  for (const auto& one : all)
    if (index++ % (kSanitized ? every : 1) == 0) kept.push_back(one);
  return kept;
}

}  // namespace snug::testing
