#pragma once
// How something is cut among ranks that need not divide it evenly: parts differ by at most one element.

#include <cstdint>

namespace snug {

struct EvenPart {
  int64_t begin = 0, elements = 0;
};

// The part of rank `of`.
constexpr EvenPart even_part(int64_t elements, int64_t ranks, int64_t of) {
  const int64_t begin = elements * of / ranks;
  return {begin, elements * (of + 1) / ranks - begin};
}

}  // namespace snug
