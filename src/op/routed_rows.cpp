#include "op/routed_rows.h"

#include <algorithm>

#include "base/checked.h"

namespace snug {

// An expert with n tokens takes ceil(n / tile) tiles, at most n + tile - 1 rows; an expert without takes none. At most
// min(E, M*J) experts have tokens, so that all take at most M*J + min(E, M*J) * (tile - 1) rows, and whole tiles.
//
// Tiles are as tall as keeps padding to a quarter of the rows, 64 at most (products of several tiles cost less anyway) and
// 8 at least.
RoutedRows routed_rows(int64_t tokens, int64_t experts, int64_t choices) {
  const int64_t needed = checked_mul(tokens, choices);
  const int64_t used_experts = std::min(experts, needed);
  int64_t tile = 8;
  while (tile < 64 && 2 * tile * used_experts * 4 <= needed) tile *= 2;
  return {checked_add(needed, checked_mul(used_experts, tile - 1)) / tile * tile, tile};
}

RoutedRows routed_rows(int64_t tokens, int64_t experts, int64_t choices, int64_t ranks) {
  return routed_rows(tokens, experts / ranks, std::min(choices, experts / ranks));
}

}  // namespace snug
