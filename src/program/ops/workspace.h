#pragma once
// How each op is cut and how much workspace it may use, as functions of shape, dtypes and threads. These are the numbers the
// plan dictates; the kernels carve their workspace in the order written here and never use more. The op table proves it.

#include <cstdint>

#include "base/arithmetic.h"
#include "base/dtype.h"

namespace snug {

struct Op;
struct Program;

// A product c[m, n] = op(a)[m, k] op(b)[k, n] as its kernel sees it.
struct ProductShape {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;
  DType a = DType::f32, b = DType::f32, c = DType::f32;  // of a quantized b: what its numbers are rounded to
  bool quantized = false;                                // b is codes, copied as numbers
  bool scaled = false;
  Arithmetic arithmetic = Arithmetic::fp32;
};
// The product that a matmul op of a Program asks for.
ProductShape product_shape(const Program& program, const Op& op);

// Block sizes; 0 means all.
struct Blocks {
  int64_t rows = 0, cols = 0, depth = 0;
};

// A product that generation makes by dots (Arithmetic::fp32_dots). Training does not ask, whatever its batch.
bool has_few_rows(const ProductShape& shape);
// How this product is computed in a Program whose target multiplies bf16 and f16 as `allowed`.
Arithmetic product_arithmetic(const ProductShape& shape, Arithmetic most);
// Of a product with no short dimension, from its operands' dtypes and the most that the target has.
Arithmetic half_arithmetic(DType a, DType b, Arithmetic most);

// ---- matmul in fp32: blocks, then bytes = [a block] [b block] [c block] [library scratchpad], each 64-aligned. a and b
// blocks exist where an operand is not used in place (not fp32, or a transposed), the c block where c is not fp32 or its
// columns are blocked.
Blocks matmul_blocks(const ProductShape& shape, int32_t threads);
int64_t matmul_workspace_bytes(const ProductShape& shape, int32_t threads);
// The same for other blocks than those above.
int64_t matmul_workspace_bytes(const ProductShape& shape, const Blocks& blocks, int32_t threads);
// How a block of b [k, n] is handed to oneDNN: row-major, as [n, k], or copied into panels of 64 columns.
enum class OperandB : uint8_t { plain, transposed, packed };
// What oneDNN 2.6's fp32 matmul asks for (AVX-512, user scratchpad, everything dense) for one block.
int64_t product_scratch_bytes(int64_t m, int64_t n, int64_t k, OperandB b, bool accumulate, int32_t threads);

// ---- products in bf16: blocks, then bytes = [b panel] [c panel, where several depths do not sum up in c] [for each
// thread: a block, tile of c].
Blocks mixed_blocks(const ProductShape& shape, int32_t threads);
int64_t mixed_workspace_bytes(const ProductShape& shape, const Blocks& blocks, int32_t threads);

// ---- attention, forward and backward: blocks (queries by keys), bytes for all threads.
Blocks attention_blocks(int64_t seq_len, int64_t head_size);
struct AttentionShape {
  int64_t batch = 0, seq_len = 0, kv_heads = 0, head_size = 0;
  Arithmetic arithmetic = Arithmetic::fp32;
};
int64_t attention_workspace_bytes(const AttentionShape& shape, int32_t threads);
int64_t attention_backward_workspace_bytes(const AttentionShape& shape, int32_t threads);

// ---- cached_attention: bytes for all threads, each [scores of a head] [query].
int64_t cached_attention_workspace_bytes(int64_t capacity, int64_t head_size, int32_t threads);

// ---- head_loss: rows a chunk, vocabulary entries a panel; then bytes = [hidden chunk] [low chunk] [d_hidden chunk] [d_low
// chunk] [row statistics] [panel: weights copied, or d_logits transposed] [logits of all panels where they are kept,
// or of one] [scratchpad].
struct HeadShape {
  int64_t rows = 0, cols = 0, vocabulary = 0, rank = 0;  // M, C, V, R (0: no LoRA on the head)
  DType hidden = DType::f32, weight = DType::f32, low = DType::f32, low_weight = DType::f32;
  bool training = true;         // d_hidden (and d_low) wanted
  bool weight_trained = false;  // d_weight wanted
  bool low_trained = false;
  Arithmetic arithmetic = Arithmetic::fp32;

  // From the walk that sums each row's softmax to the one that sums gradients of weights, if there is any.
  bool keeps_logits() const { return training && (weight_trained || low_trained) && arithmetic == Arithmetic::fp32; }
};
Blocks head_loss_blocks(const HeadShape& shape, int32_t threads);
int64_t head_loss_workspace_bytes(const HeadShape& shape, int32_t threads);
// The same for other blocks than those above.
int64_t head_loss_workspace_bytes(const HeadShape& shape, const Blocks& blocks, int32_t threads);

}  // namespace snug
