// expert_matmul: c [P, N] = a [P, K] times the transposed weight [E, N, K] of each tile's expert (tile_experts [P / tile]).
// Adjoint: d_a [P, K] (+)= d_c W, and d_W [E, N, K] += d_c^T a over each expert's rows.

#include <algorithm>

#include "program/adjoint.h"
#include "program/ops/experts.h"
#include "program/ops/quantized.h"
#include "program/rules.h"

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

std::vector<ProductShape> expert_products(const Program& program, const Op& op) {
  const Tensor& a = program.tensor(op.find(Slot::a));
  const Tensor& b = program.tensor(op.find(Slot::b));
  const Tensor& c = program.tensor(op.find(Slot::c));
  const Tensor& weight = op.attributes.transpose_a ? c : b;
  const int64_t rows = a.dim(0);
  const int64_t tile = rows / program.tensor(op.find(Slot::tile_experts)).elements();
  const bool quantized = op.find(Slot::absmax) != kNone;
  ProductShape shape{.transpose_a = op.attributes.transpose_a,
                     .transpose_b = op.attributes.transpose_b,
                     .accumulate = op.attributes.accumulate,
                     .a = a.dtype,
                     .b = quantized ? op.attributes.values : b.dtype,
                     .c = c.dtype,
                     .quantized = quantized};
  shape.arithmetic = half_arithmetic(shape.a, shape.b, program.arithmetic);
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

namespace {

void check(const Program& program, const Op& op) {
  const Tensor& a = program.tensor(op.find(Slot::a));
  const Tensor& b = program.tensor(op.find(Slot::b));
  const Tensor& c = program.tensor(op.find(Slot::c));
  const bool sums = op.attributes.transpose_a;
  const Tensor& weight = sums ? c : b;
  const Tensor& result = sums ? b : c;  // the other matrix of routed rows
  expect(weight.shape.size() == 3, op, "weights are E x N x K");
  expect(a.dim(0) % program.tensor(op.find(Slot::tile_experts)).elements() == 0, op, "rows are whole tiles");
  const bool forward = op.attributes.transpose_b;
  expect(a.elements() == a.dim(0) * weight.dim(forward ? 2 : 1), op, "a is P x K, or P x N backward");
  expect(result.elements() == a.dim(0) * weight.dim(forward ? 1 : 2), op, "c is P x N, or P x K backward");
  expect(!sums || (op.attributes.accumulate && !forward), op, "gradients of weights are added to");
  expect(op.attributes.scale == 1.0, op, "there is no scale");
  check_scales(program, op);
  expect(op.attributes.needed_rows > 0 && op.attributes.needed_rows <= a.dim(0), op, "needed rows are known");
}

// Of all products that may run, with the op's cut for `threads`, by `used` of them.
int64_t product_bytes(const Program& program, const Op& op, int32_t threads, int32_t used) {
  const std::vector<ProductShape> shapes = expert_products(program, op);
  const Blocks blocks = matmul_blocks(shapes.front(), threads);
  int64_t most = 0;
  for (const ProductShape& shape : shapes) most = std::max(most, matmul_workspace_bytes(shape, blocks, used));
  return align_up(most, kAlignment);
}

// Measured on two cores: experts of about 256 rows side by side take 0.6 to 0.9 of the time of one after the other on both,
// which is mostly waiting. Each thread then needs its own panel of the weight; where that is much, all share one.
int64_t apart_bytes(const Program& program, const Op& op, int32_t threads) {  // 0: not worth it
  if (threads == 1 || !in_bf16(expert_products(program, op).front().arithmetic)) return 0;
  const int64_t bytes = threads * product_bytes(program, op, threads, 1);
  return bytes <= kMostApart ? bytes : 0;
}

// Blocks of the largest product serve the smaller ones.
OpCut cut(const Program& program, const Op& op, int32_t threads) {
  const ProductShape shape = expert_products(program, op).front();
  const Blocks blocks = matmul_blocks(shape, threads);
  return {.threads = threads,
          .rows = blocks.rows,
          .cols = blocks.cols,
          .depth = blocks.depth,
          .arithmetic = shape.arithmetic,
          .apart = apart_bytes(program, op, threads) > 0};
}

int64_t workspace(const Program& program, const Op& op, int32_t threads) {
  return std::max(product_bytes(program, op, threads, threads), apart_bytes(program, op, threads));
}

Work work(const Program& program, const Op& op) {  // rows without padding; every expert's weight once
  const Tensor& a = program.tensor(op.find(Slot::a));
  const Tensor& b = program.tensor(op.find(Slot::b));
  const Tensor& c = program.tensor(op.find(Slot::c));
  const Tensor& weight = op.attributes.transpose_a ? c : b;
  const auto needed = static_cast<double>(op.attributes.needed_rows);
  const double share = needed / static_cast<double>(a.dim(0));
  Work work{.flops = 2.0 * needed * static_cast<double>(weight.dim(1)) * static_cast<double>(weight.dim(2))};
  for (const Tensor* tensor : {&a, &b, &c}) {
    const double times = tensor == &c && op.attributes.accumulate ? 2.0 : 1.0;
    work.bytes += times * static_cast<double>(tensor->bytes()) * (tensor == &weight ? 1.0 : share);
  }
  return work;
}

void adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId a = op.find(Slot::a);
  const TensorId b = op.find(Slot::b);
  const TensorId tiles = op.find(Slot::tile_experts);
  const TensorId d_c = adjoint.gradient(op.find(Slot::c));
  if (d_c == kNone) return;
  expect(op.attributes.transpose_b, op, "only the linear form has an adjoint");
  if (adjoint.wanted(a)) {
    const auto d_a = adjoint.destination(a);
    Op back{OpKind::expert_matmul};
    back.attributes = {.accumulate = d_a.accumulate, .needed_rows = op.attributes.needed_rows};
    back.reads(Slot::a, d_c).reads(Slot::b, b).reads(Slot::tile_experts, tiles);
    back.with(Slot::c, d_a.access(), d_a.tensor);
    read_scales(op, back);
    adjoint.emit(std::move(back));
  }
  if (adjoint.wanted(b)) {
    const auto d_b = adjoint.destination(b);
    Op back{OpKind::expert_matmul};
    back.attributes = {.transpose_a = true, .accumulate = d_b.accumulate, .needed_rows = op.attributes.needed_rows};
    back.reads(Slot::a, d_c).reads(Slot::b, a).reads(Slot::tile_experts, tiles);
    back.with(Slot::c, d_b.access(), d_b.tensor);
    adjoint.emit(std::move(back));
  }
}

}  // namespace

extern const OpRule kExpertMatmulRule;
const OpRule kExpertMatmulRule = {OpKind::expert_matmul,           check, cut, workspace, work, adjoint, Recompute::costly,
                                  {.tensor = true, .expert = true}};

}  // namespace snug
