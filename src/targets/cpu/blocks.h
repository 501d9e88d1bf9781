#pragma once
// Sizes of blocks, and what several ops cut alike.

#include <algorithm>
#include <cstdint>

#include "base/checked.h"

namespace snug {

// Block sizes; 0 means all.
struct Blocks {
  int64_t rows = 0, cols = 0, depth = 0;
};

// ---- for the files that cut
namespace blocks {

constexpr int64_t kFloat = 4;
constexpr int64_t kAlign = 64;
constexpr int64_t kMiB = int64_t{1} << 20;

inline int64_t blocks_of(int64_t all, int64_t block) { return (all + block - 1) / block; }

// A block of at most about `most` (but `least`), a multiple of `step`, such that all blocks are alike: the largest one above
// half of `most` that divides `all`, or else one that leaves the last block nearly full. 0 if one block takes all.
inline int64_t even_block(int64_t all, int64_t most, int64_t least, int64_t step) {
  const int64_t target = std::max(most, least) / step * step;
  if (all <= target) return 0;
  for (int64_t block = target; block > target / 2; block -= step) {
    if (all % block == 0) return block;
  }
  return align_up(blocks_of(all, blocks_of(all, target)), step);
}

inline int64_t whole(int64_t block, int64_t all) { return block <= 0 ? all : std::min(block, all); }
inline int64_t last(int64_t all, int64_t block) { return all - (all - 1) / block * block; }

// Bytes of a block of b packed as kernels/cpu/product.h says.
inline int64_t packed_bytes(int64_t depth, int64_t cols) { return align_up(depth, 16) * align_up(cols, 64) * kFloat; }

}  // namespace blocks

}  // namespace snug
