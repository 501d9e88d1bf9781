#pragma once
// How something is cut among ranks that need not divide it evenly: parts differ by at most one element.

#include <cstdint>

namespace snug {

struct EvenPart {
  int64_t begin = 0, elements = 0;
};

// The part of rank `of`.
constexpr EvenPart even_part(int64_t elements, int64_t ranks, int64_t of) {
  __extension__ using Wide = __int128;
  const auto begin = static_cast<int64_t>(Wide{elements} * of / ranks);
  return {begin, static_cast<int64_t>(Wide{elements} * (of + 1) / ranks) - begin};
}

}  // namespace snug
