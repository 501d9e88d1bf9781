// How products in bf16 are cut, and what that takes (kernels/cpu/mixed_product.h). Tiles are 32 x 32; a panel
// of b is packed once and meets every row of a; a thread's block of a stays in its L2 cache.

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "targets/cpu/products.h"

namespace snug {

using blocks::blocks_of;
using blocks::kMiB;
using blocks::whole;

namespace {

constexpr int64_t kTile = 32;

// Of a matrix in a product with another.
int64_t pieces_of(DType dtype, DType other) {
  return dtype == DType::bf16 || (dtype == DType::f32 && other == DType::bf16) ? 1 : 2;
}

// Parts of at most `most`, all alike, in multiples of a tile; 0 if one takes all.
int64_t even_tiles(int64_t all, int64_t most) {
  most = std::max(most / kTile * kTile, kTile);
  if (all <= most) return 0;
  return align_up(blocks_of(all, blocks_of(all, most)), kTile);
}

bool copies_mixed_a(const ProductShape& shape) {
  return shape.a != DType::bf16 || shape.transpose_a || shape.k % kTile != 0;
}

}  // namespace

// A copied a is split anew for each panel of b, so that panels are then twice as wide.
Blocks mixed_blocks(const ProductShape& shape, int32_t threads) {
  Blocks blocks;
  if (!shape.turned) blocks.depth = even_tiles(shape.k, 2048);  // else sums of several depths would be many
  const int64_t depth = align_up(whole(blocks.depth, shape.k), kTile);
  const int64_t panel = copies_mixed_a(shape) ? 8 * kMiB : 4 * kMiB;
  blocks.cols = even_tiles(shape.n, std::max<int64_t>(panel / (pieces_of(shape.b, shape.a) * depth * 2), 256));
  const int64_t cached = std::clamp<int64_t>(kMiB / (pieces_of(shape.a, shape.b) * depth * 2) / kTile * kTile, kTile, 256);
  // As many blocks as threads, or a multiple.
  const int64_t rounds = blocks_of(shape.m, cached * threads);
  blocks.rows = even_tiles(shape.m, align_up(blocks_of(shape.m, rounds * threads), kTile));
  return blocks;
}

bool is_turned(const ProductShape& shape) {
  return in_bf16(shape.arithmetic) && shape.transpose_b && !shape.transpose_a && !shape.quantized &&
         shape.b == DType::bf16 && shape.k % kTile == 0 && 2 * shape.m <= shape.n;
}

ProductShape turned(const ProductShape& shape) {
  ProductShape other = shape;
  std::swap(other.m, other.n);
  std::swap(other.a, other.b);
  other.transpose_a = !shape.transpose_b;
  other.transpose_b = !shape.transpose_a;
  other.turned = true;
  return other;
}

int64_t mixed_workspace_bytes(const ProductShape& shape, const Blocks& blocks, int32_t threads) {
  const int64_t depth = align_up(whole(blocks.depth, shape.k), kTile);
  const int64_t cols = align_up(whole(blocks.cols, shape.n), kTile);
  const bool whole_rows = shape.m % kTile == 0;
  const int64_t rows = copies_mixed_a(shape) ? align_up(whole(blocks.rows, shape.m), kTile) : whole_rows ? 0 : kTile;
  const bool rounds_c = shape.c != DType::f32 || shape.scaled;
  const bool gathers_c = depth < shape.k && rounds_c;
  const bool direct = !rounds_c && whole_rows && shape.n % kTile == 0 && !shape.turned;
  const int64_t tile_bytes = direct ? 0 : (shape.turned ? 2 : 1) * kTile * kTile * 4;
  int64_t bytes = pieces_of(shape.b, shape.a) * depth * cols * 2;
  if (gathers_c) bytes += align_up(shape.m, kTile) * cols * 4;
  const int64_t row_blocks = blocks_of(shape.m, align_up(whole(blocks.rows, shape.m), kTile));
  const int64_t col_groups = std::min(cols / kTile, blocks_of(threads, row_blocks));
  const int64_t workers = std::min<int64_t>(threads, row_blocks * col_groups);
  return bytes + workers * (pieces_of(shape.a, shape.b) * rows * depth * 2 + tile_bytes);
}

}  // namespace snug
