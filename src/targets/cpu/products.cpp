// How matmul is cut, and what that takes.
//
// A product uses fp32 operands where they lie. bf16 and f16 operands are widened and a transposed `a` is turned, block by
// block, into the workspace; so blocks are as large as keeps a copy cheap beside the product it serves (each element of a
// copied block is used for hundreds of multiplications) and as small as the caches.

#include <algorithm>

#include "targets/cpu/products.h"

namespace snug {

using blocks::even_block;
using blocks::kAlign;
using blocks::kFloat;
using blocks::kMiB;
using blocks::last;
using blocks::packed_bytes;
using blocks::whole;

namespace {

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

ProductShape product_shape(const OpView& op, const cpu::Machine& machine) {
  ProductShape shape = product_shape(op);
  const bool dots = machine.generates && has_few_rows(shape) && !shape.quantized;
  shape.arithmetic = dots ? Arithmetic::fp32_dots : product_arithmetic(shape, machine.products);
  return is_turned(shape) ? turned(shape) : shape;
}

namespace cpu {
namespace {

OpCut product_cut(const OpView& op, const Machine& machine) {
  const ProductShape shape = product_shape(op, machine);
  const Blocks blocks = matmul_blocks(shape, machine.threads);
  return {.threads = machine.threads,
          .rows = blocks.rows,
          .cols = blocks.cols,
          .depth = blocks.depth,
          .arithmetic = shape.arithmetic,
          .turned = shape.turned};
}

int64_t product_workspace(const OpView& op, const Machine& machine) {
  return matmul_workspace_bytes(product_shape(op, machine), machine.threads);
}

}  // namespace

const OpSizing sizing::matmul = {product_cut, product_workspace};

}  // namespace cpu
}  // namespace snug
