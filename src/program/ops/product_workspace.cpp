// How matmul and head_loss are cut, and what that takes.
//
// A product uses fp32 operands where they lie. bf16 and f16 operands are widened and a transposed `a` is turned, block by
// block, into the workspace; so blocks are as large as keeps a copy cheap beside the product it serves (each element of a
// copied block is used for hundreds of multiplications) and as small as the caches.

#include <algorithm>

#include "base/checked.h"
#include "base/scalars.h"
#include "program/ops/workspace.h"

namespace snug {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kAlign = 64;
constexpr int64_t kMiB = int64_t{1} << 20;

int64_t blocks_of(int64_t all, int64_t block) { return (all + block - 1) / block; }

// A block of at most about `most` (but `least`), a multiple of `step`, such that all blocks are alike: the largest one above
// half of `most` that divides `all`, or else one that leaves the last block nearly full. 0 if one block takes all.
int64_t even_block(int64_t all, int64_t most, int64_t least, int64_t step) {
  const int64_t target = std::max(most, least) / step * step;
  if (all <= target) return 0;
  for (int64_t block = target; block > target / 2; block -= step) {
    if (all % block == 0) return block;
  }
  return align_up(blocks_of(all, blocks_of(all, target)), step);
}

int64_t whole(int64_t block, int64_t all) { return block <= 0 ? all : std::min(block, all); }
int64_t last(int64_t all, int64_t block) { return all - (all - 1) / block * block; }

// Bytes of a block of b packed as kernels/cpu/product.h says.
int64_t packed_bytes(int64_t depth, int64_t cols) { return align_up(depth, 16) * align_up(cols, 64) * kFloat; }

constexpr int64_t kThin = 64;
constexpr int64_t kFewRows = 4;  // kernels/cpu/dot_product.h

// c [m, n] += low [m, r] b, which touches every element of c once: the upper half of a LoRA pair.
bool is_thin_update(const ProductShape& s) {
  return s.k <= kThin && s.k < s.n && s.k < s.m && s.a == DType::f32 && s.b == DType::f32 && !s.quantized;
}

// A gradient of a thin weight, summed over many tokens.
bool is_thin_sum(const ProductShape& s) {
  if (s.transpose_b || s.c != DType::f32 || s.k < kThin || s.quantized) return false;
  return s.m <= s.n ? s.m <= kThin && s.a == DType::f32 : s.n <= kThin && s.b == DType::f32;
}

bool copies_a(const ProductShape& shape) { return shape.a != DType::f32 || shape.transpose_a; }
bool copies_b(const ProductShape& shape) { return shape.b != DType::f32 || shape.quantized; }

}  // namespace

bool has_few_rows(const ProductShape& shape) { return !shape.transpose_a && shape.m <= kFewRows; }

Arithmetic product_arithmetic(const ProductShape& shape, Arithmetic most) {
  const bool from_registers = shape.transpose_a ? is_thin_sum(shape) : is_thin_update(shape);
  return from_registers ? Arithmetic::fp32_thin : half_arithmetic(shape.a, shape.b, most);
}

Arithmetic half_arithmetic(DType a, DType b, Arithmetic most) {
  if (a == DType::bf16 || b == DType::bf16) return in_bf16(most) ? Arithmetic::bf16 : Arithmetic::fp32;
  return is_half(a) || is_half(b) ? (most == Arithmetic::bf16_pieces ? most : Arithmetic::fp32) : Arithmetic::fp32;
}

// Measured on two cores of AVX-512 (2048 tokens; 576, 1536, 4096 and 11008 wide): summing 256 tokens at a time is as fast as
// any more, and blocks of 512 x 512 cost nothing beside whole operands where k > 1000, up to 7 % at k = 576; all are above
// oneDNN's own product of 2048 x 2048 x 2048.
Blocks matmul_blocks(const ProductShape& shape, int32_t threads) {
  if (shape.arithmetic == Arithmetic::fp32_thin || shape.arithmetic == Arithmetic::fp32_dots) return {};
  if (in_bf16(shape.arithmetic)) return mixed_blocks(shape, threads);
  Blocks blocks;
  if (shape.transpose_a) {  // a gradient of weights: all columns, so that every block of tokens adds straight into c
    blocks.depth = even_block(shape.k, 256, 256, 16);
    blocks.rows = even_block(shape.m, 512, 512, 16);
    return blocks;
  }
  const int64_t column_bytes = shape.k * kFloat;
  const int64_t most_copied = std::clamp<int64_t>(2 * kMiB / column_bytes, 256, 512);
  if (copies_b(shape) && shape.n * column_bytes > 2 * kMiB) blocks.cols = even_block(shape.n, most_copied, 256, 64);
  const bool gathers_c = shape.c != DType::f32 || blocks.cols != 0;
  int64_t most = shape.m;
  if (copies_a(shape)) most = std::min(most, most_copied);
  if (gathers_c) most = std::min(most, std::clamp<int64_t>(2 * kMiB / (whole(blocks.cols, shape.n) * kFloat), 128, 512));
  blocks.rows = even_block(shape.m, most, 1, most < 16 ? 1 : 16);
  return blocks;
}

int64_t matmul_workspace_bytes(const ProductShape& shape, const Blocks& blocks, int32_t threads) {
  if (shape.arithmetic == Arithmetic::fp32_thin)  // b turned
    return shape.transpose_b ? align_up(shape.k * shape.n * kFloat, kAlign) : 0;
  if (shape.arithmetic == Arithmetic::fp32_dots) return 0;
  if (in_bf16(shape.arithmetic)) return mixed_workspace_bytes(shape, blocks, threads);
  const int64_t rows = whole(blocks.rows, shape.m);
  const int64_t cols = whole(blocks.cols, shape.n);
  const int64_t depth = whole(blocks.depth, shape.k);
  const bool a_in_place = !copies_a(shape) && depth == shape.k;
  const bool b_in_place = !copies_b(shape) && (shape.transpose_b ? depth == shape.k : cols == shape.n);
  const bool c_in_place = shape.c == DType::f32 && cols == shape.n;
  int64_t bytes = 0;
  if (!a_in_place) bytes += align_up(rows * depth * kFloat, kAlign);
  if (!b_in_place) bytes += align_up(packed_bytes(depth, cols), kAlign);
  if (!c_in_place) bytes += align_up(rows * cols * kFloat, kAlign);
  const OperandB b = !b_in_place ? OperandB::packed : shape.transpose_b ? OperandB::transposed : OperandB::plain;
  int64_t scratch = 0;
  for (const int64_t m : {rows, last(shape.m, rows)}) {
    for (const int64_t n : {cols, last(shape.n, cols)}) {
      for (const int64_t k : {depth, last(shape.k, depth)}) {
        const bool adds = (c_in_place && shape.accumulate) || depth < shape.k;
        scratch = std::max(scratch, product_scratch_bytes(m, n, k, b, adds, threads));
      }
    }
  }
  return bytes + scratch;
}

int64_t matmul_workspace_bytes(const ProductShape& shape, int32_t threads) {
  return matmul_workspace_bytes(shape, matmul_blocks(shape, threads), threads);
}

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

}  // namespace snug
