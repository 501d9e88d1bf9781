// How head_loss is cut, and what that takes.

#include "targets/cpu/head_loss.h"

#include <algorithm>

#include "base/scalars.h"
#include "targets/cpu/products.h"

namespace snug {

using blocks::blocks_of;
using blocks::even_block;
using blocks::kAlign;
using blocks::kFloat;
using blocks::kMiB;
using blocks::last;
using blocks::packed_bytes;

// Panels: as wide as keeps a widened panel of weights within 2 MiB, so that it is still in the caches when it is used.
//
// Rows where the head's weights are trained: the logits of a chunk are held for all panels, a quarter of the weights, 64 to
// 128 MiB, since every chunk reads (and widens) all weights once more and pays for it with 2 * rows multiplications an
// element; 64 rows at least, for large vocabularies. (Liger takes 2^ceil(log2(M / (V / C))) rows: about as many logits as
// hidden values; that is 32 rows for 2048 tokens of SmolLM2-135M and twice the time.) Otherwise one panel is held only.
//
// In bf16 one panel of logits exists at a time, 16 MiB at most, of as many rows as the weights' panels are worth
// packing for.
Blocks head_loss_blocks(const HeadShape& shape, int32_t) {
  Blocks blocks;
  if (in_bf16(shape.arithmetic)) {
    const int64_t rows = even_block(align_up(shape.rows, 16), 2048, 64, 16);
    blocks.rows = rows == 0 ? align_up(shape.rows, 16) : rows;
    const int64_t cols = even_block(shape.vocabulary, 16 * kMiB / (blocks.rows * kFloat), 256, 64);
    blocks.cols = cols == 0 ? shape.vocabulary : cols;
    return blocks;
  }
  const int64_t most_cols = std::clamp<int64_t>(2 * kMiB / (shape.cols * kFloat), 256, 4096);
  const int64_t panel = even_block(shape.vocabulary, most_cols, 256, 64);
  blocks.cols = panel == 0 ? shape.vocabulary : panel;
  const int64_t held = shape.keeps_logits() ? blocks_of(shape.vocabulary, blocks.cols) * blocks.cols : blocks.cols;
  const int64_t most_held = std::clamp(shape.vocabulary * shape.cols * size_of(shape.weight) / 4, 64 * kMiB, 128 * kMiB);
  const int64_t most_rows = shape.keeps_logits() ? std::max<int64_t>(most_held / (held * kFloat), 64) : 1024;
  const int64_t rows = even_block(align_up(shape.rows, 16), most_rows, 64, 16);
  blocks.rows = rows == 0 ? align_up(shape.rows, 16) : rows;
  return blocks;
}

int64_t head_loss_workspace_bytes(const HeadShape& shape, const Blocks& blocks, int32_t threads) {
  const int64_t rows = blocks.rows;
  const int64_t cols = std::min(blocks.cols, shape.vocabulary);
  const int64_t panels = shape.keeps_logits() ? blocks_of(shape.vocabulary, cols) : 1;
  constexpr int64_t kStatistics = 24;  // a row: sum, maximum, target's logit, best token

  // The two matrices that make logits.
  struct Factor {
    int64_t inner;
    bool copied, trained, adds, tiles;
    DType half;  // of both in tiles
  };
  const auto factor = [&](int64_t inner, DType values, DType weight, bool trained, bool adds) {
    const bool tiles = in_bf16(shape.arithmetic) && is_half(values) && weight == values;
    return Factor{inner, weight != DType::f32, trained, adds, tiles, weight};
  };
  const Factor factors[] = {factor(shape.cols, shape.hidden, shape.weight, shape.weight_trained, false),
                            factor(shape.rank, shape.low, shape.low_weight, shape.low_trained, true)};

  int64_t bytes = 0;
  const auto part = [&bytes](int64_t of) { bytes += align_up(of, kAlign); };
  for (const Factor& of : factors) part(rows * of.inner * (of.tiles ? size_of(shape.hidden) : kFloat));
  for (const Factor& of : factors)
    if (shape.training) part(rows * of.inner * kFloat);
  part(rows * kStatistics);
  int64_t panel = 0;
  int64_t scratch = 0;
  for (const auto& [inner, copied, trained, adds, tiles, half] : factors) {
    if (inner == 0) continue;
    if (tiles) {
      const auto ask = [&](const ProductShape& product) {
        scratch = std::max(scratch, mixed_workspace_bytes(product, {.rows = kHeadRowBlock}, threads));
      };
      for (const int64_t width : {cols, last(shape.vocabulary, cols)}) {
        ask({.m = rows, .n = width, .k = inner, .transpose_b = true, .a = half, .b = half});
        if (shape.training) ask({.m = rows, .n = inner, .k = width, .b = half});
        if (trained) ask({.m = width, .n = inner, .k = rows, .transpose_a = true, .b = half});
      }
      continue;
    }
    if (copied) panel = std::max(panel, packed_bytes(inner, cols));
    if (copied && shape.training) panel = std::max(panel, packed_bytes(cols, inner));
    if (trained) panel = std::max(panel, rows * cols * kFloat);
    for (const int64_t width : {cols, last(shape.vocabulary, cols)}) {
      const auto ask = [&](int64_t m, int64_t n, int64_t k, OperandB b, bool sums) {
        scratch = std::max(scratch, product_scratch_bytes(m, n, k, b, sums, threads));
      };
      ask(rows, width, inner, copied ? OperandB::packed : OperandB::transposed, adds);
      if (shape.training) ask(rows, inner, width, copied ? OperandB::packed : OperandB::plain, true);
      if (trained) ask(width, inner, rows, OperandB::plain, true);
    }
  }
  part(panel);
  part(panels * rows * cols * kFloat);
  return bytes + scratch;
}

int64_t head_loss_workspace_bytes(const HeadShape& shape, int32_t threads) {
  return head_loss_workspace_bytes(shape, head_loss_blocks(shape, threads), threads);
}

namespace cpu {
namespace {

HeadShape head_shape(const OpView& op, const Machine& machine) {
  const OperandView &hidden = op[Slot::hidden], &weight = op[Slot::weight];
  HeadShape shape{.rows = hidden.elements / weight.dim(1), .cols = weight.dim(1), .vocabulary = weight.dim(0)};
  if (op.has(Slot::low)) {
    shape.rank = op[Slot::low_weight].dim(1);
    shape.low = op[Slot::low].dtype;
    shape.low_weight = op[Slot::low_weight].dtype;
  }
  shape.hidden = hidden.dtype;
  shape.weight = weight.dtype;
  shape.training = op.has(Slot::d_hidden);
  shape.weight_trained = op.has(Slot::d_weight);
  shape.low_trained = op.has(Slot::d_low_weight);
  if (shape.weight == shape.hidden) shape.arithmetic = half_arithmetic(shape.hidden, shape.weight, machine.products);
  return shape;
}

OpCut head_cut(const OpView& op, const Machine& machine) {
  const HeadShape shape = head_shape(op, machine);
  const Blocks blocks = head_loss_blocks(shape, machine.threads);
  return {.threads = machine.threads, .rows = blocks.rows, .cols = blocks.cols, .arithmetic = shape.arithmetic};
}

int64_t head_workspace(const OpView& op, const Machine& machine) {
  return head_loss_workspace_bytes(head_shape(op, machine), machine.threads);
}

}  // namespace

const OpSizing sizing::head_loss = {head_cut, head_workspace};

}  // namespace cpu
}  // namespace snug
