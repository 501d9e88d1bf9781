// expert_matmul: one `matmul` for neighbouring tiles of one expert, all threads inside it. Which tiles go together follows
// from the routing alone, so that the same cut gives the same bits.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/tiles.h"
#include "kernels/kernels.h"

namespace snug::kernels {
namespace {

bool on_bf16_tiles(const ExpertMatmul& op) { return op.cut.arithmetic == Arithmetic::bf16_pieces; }

// The product of `tiles` tiles from row `row` on with the weight of `expert`.
Matmul product_of(const ExpertMatmul& op, int64_t row, int64_t tiles, int64_t expert) {
  const int64_t rows = tiles * op.tile;
  const int64_t weight = expert * op.n * op.k;
  Matmul product{.transpose_a = op.transpose_a,
                 .transpose_b = op.transpose_b,
                 .accumulate = op.accumulate,
                 .workspace = op.workspace,
                 .cut = op.cut};
  if (op.transpose_a) {
    product.a = at(op.a, row * op.n);
    product.b = at(op.b, row * op.k);
    product.c = at(op.c, weight);
    product.m = op.n, product.n = op.k, product.k = rows;
    return product;
  }
  const int64_t inner = op.transpose_b ? op.k : op.n;
  const int64_t outer = op.transpose_b ? op.n : op.k;
  product.a = at(op.a, row * inner);
  product.b = at(op.b, weight);
  product.c = at(op.c, row * outer);
  product.m = rows, product.n = outer, product.k = inner;
  return product;
}

// Tiles to multiply together where so many of one expert follow.
int64_t tiles_together(const ExpertMatmul& op, int64_t left) {
  if (on_bf16_tiles(op)) return std::min(left, op.span);
  int64_t tiles = op.span;
  while (tiles > left) tiles /= 2;
  return tiles;
}

// Rows that no expert has are zero, so that whoever reads all rows reads numbers.
void clear_rows(const ExpertMatmul& op, int64_t row, int64_t rows) {
  const int64_t row_bytes = (op.transpose_b ? op.n : op.k) * size_of(op.c.dtype);
  auto* const start = static_cast<char*>(op.c.data) + row * row_bytes;
  for_parts(op.cut.threads, rows, 1, [&](int32_t, int64_t begin, int64_t end) {
    std::memset(start + begin * row_bytes, 0, static_cast<size_t>((end - begin) * row_bytes));
  });
}

}  // namespace

void prepare(const ExpertMatmul& op) {
  if (on_bf16_tiles(op)) {
    for (int64_t tiles = op.span; tiles > 0; --tiles) prepare(product_of(op, 0, tiles, 0));
  } else {
    for (int64_t tiles = op.span; tiles > 0; tiles /= 2) prepare(product_of(op, 0, tiles, 0));
  }
}

void expert_matmul(const ExpertMatmul& op) {
  require_storage({op.a.dtype, op.b.dtype, op.c.dtype});
  const int64_t tiles = op.routed_rows / op.tile;
  int64_t next = 0;
  for (int64_t tile = 0; tile < tiles; tile = next) {
    const int32_t expert = op.tile_experts[tile];
    for (next = tile + 1; next < tiles && op.tile_experts[next] == expert;) ++next;
    if (expert < 0) {
      if (!op.transpose_a && !op.accumulate) clear_rows(op, tile * op.tile, (next - tile) * op.tile);
      continue;
    }
    for (int64_t count = 0; tile < next; tile += count) {
      count = tiles_together(op, next - tile);
      matmul(product_of(op, tile * op.tile, count, expert));
    }
  }
}

}  // namespace snug::kernels
