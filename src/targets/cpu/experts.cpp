// How expert_matmul is cut, and what that takes.

#include <algorithm>

#include "base/checked.h"
#include "targets/cpu/products.h"

namespace snug {
namespace {

// In fp32 products are made before step 0, for 1, 2, 4 and 8 tiles or up to so many rows.
constexpr int64_t kMostTiles = 8;
constexpr int64_t kMostRows = 256;
constexpr int64_t kMostApart = int64_t{64} << 20;  // bytes of workspace
constexpr int64_t kMostRowsInBf16 = 2048;          // of a product in bf16, which needs nothing made beforehand

}  // namespace

int64_t expert_span(int64_t tile, int64_t rows, Arithmetic arithmetic) {
  if (in_bf16(arithmetic)) return std::min(rows, kMostRowsInBf16) / tile;
  int64_t span = 1;
  while (span < kMostTiles && 2 * span * tile <= std::min(rows, kMostRows)) span *= 2;
  return span;
}

std::vector<ProductShape> expert_products(const OpView& op, const cpu::Machine& machine) {
  const OperandView &a = op[Slot::a], &b = op[Slot::b], &c = op[Slot::c];
  const OperandView& weight = op.attributes.transpose_a ? c : b;
  const int64_t rows = a.dim(0);
  const int64_t tile = rows / op[Slot::tile_experts].elements;
  const bool quantized = op.has(Slot::absmax);
  ProductShape shape{.transpose_a = op.attributes.transpose_a,
                     .transpose_b = op.attributes.transpose_b,
                     .accumulate = op.attributes.accumulate,
                     .a = a.dtype,
                     .b = quantized ? op.attributes.values : b.dtype,
                     .c = c.dtype,
                     .quantized = quantized};
  shape.arithmetic = half_arithmetic(shape.a, shape.b, machine.products);
  std::vector<ProductShape> shapes;
  const int64_t span = expert_span(tile, rows, shape.arithmetic);
  for (int64_t tiles = span; tiles > 0; tiles = in_bf16(shape.arithmetic) ? tiles - 1 : tiles / 2) {
    shape.m = shape.transpose_a ? weight.dim(1) : tile * tiles;
    shape.n = shape.transpose_b ? weight.dim(1) : weight.dim(2);
    shape.k = shape.transpose_a ? tile * tiles : weight.dim(shape.transpose_b ? 2 : 1);
    shapes.push_back(shape);
  }
  return shapes;
}

namespace cpu {
namespace {

// Of all products that may run, with the op's cut for all threads, by `used` of them.
int64_t product_bytes(const std::vector<ProductShape>& shapes, int32_t threads, int32_t used) {
  const Blocks blocks = matmul_blocks(shapes.front(), threads);
  int64_t most = 0;
  for (const ProductShape& shape : shapes) most = std::max(most, matmul_workspace_bytes(shape, blocks, used));
  return align_up(most, blocks::kAlign);
}

// Measured on two cores: experts of about 256 rows side by side take 0.6 to 0.9 of the time of one after the other on both,
// which is mostly waiting. Each thread then needs its own panel of the weight; where that is much, all share one.
int64_t apart_bytes(const std::vector<ProductShape>& shapes, int32_t threads) {  // 0: not worth it
  if (threads == 1 || !in_bf16(shapes.front().arithmetic)) return 0;
  const int64_t bytes = threads * product_bytes(shapes, threads, 1);
  return bytes <= kMostApart ? bytes : 0;
}

// Blocks of the largest product serve the smaller ones.
OpCut experts_cut(const OpView& op, const Machine& machine) {
  const std::vector<ProductShape> shapes = expert_products(op, machine);
  const Blocks blocks = matmul_blocks(shapes.front(), machine.threads);
  const int64_t rows = op[Slot::a].dim(0), tile = rows / op[Slot::tile_experts].elements;
  return {.threads = machine.threads,
          .rows = blocks.rows,
          .cols = blocks.cols,
          .depth = blocks.depth,
          .arithmetic = shapes.front().arithmetic,
          .apart = apart_bytes(shapes, machine.threads) > 0,
          .span = expert_span(tile, rows, shapes.front().arithmetic)};
}

int64_t experts_workspace(const OpView& op, const Machine& machine) {
  const std::vector<ProductShape> shapes = expert_products(op, machine);
  return std::max(product_bytes(shapes, machine.threads, machine.threads), apart_bytes(shapes, machine.threads));
}

}  // namespace

const OpSizing sizing::expert_matmul = {experts_cut, experts_workspace};

}  // namespace cpu
}  // namespace snug
