#pragma once
// How matrix products are computed and cut, and the workspace that this takes.

#include <vector>

#include "op/product.h"
#include "targets/cpu/blocks.h"
#include "targets/cpu/sizing.h"

namespace snug {

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
// How much of the summed dimension a panel of b holds, and whether each thread copies its panel for one block.
int64_t panel_depth(int64_t k);
bool copies_panel(int64_t m, int64_t n, int64_t k, OperandB b, int32_t threads);
// Rows of c that each thread sums up beside c where it adds to it in several depths; 0: none.
int64_t gathered_rows(int64_t m, int64_t n, int64_t k, bool accumulate, int32_t threads);
// What oneDNN 2.6's fp32 matmul asks for (AVX-512, user scratchpad, everything dense) for one block.
int64_t product_scratch_bytes(int64_t m, int64_t n, int64_t k, OperandB b, bool accumulate, int32_t threads);

// ---- products in bf16: blocks, then bytes = [b panel] [c panel, where several depths do not sum up in c] [for each
// thread: a block, tile of c].
Blocks mixed_blocks(const ProductShape& shape, int32_t threads);
// Whether b, a weight of more outputs than a has rows, is better walked along and a packed: then the transpose is computed,
// cut as this product.
bool is_turned(const ProductShape& shape);
ProductShape turned(const ProductShape& shape);
int64_t mixed_workspace_bytes(const ProductShape& shape, const Blocks& blocks, int32_t threads);

// ---- of ops
// The product that a matmul asks of this machine.
ProductShape product_shape(const OpView& op, const cpu::Machine& machine);

// Tiles of one expert that are multiplied together, at most.
int64_t expert_span(int64_t tile, int64_t rows, Arithmetic arithmetic);
// Every product that an expert_matmul may run, the largest first; how many tiles each takes is for the routing to say.
std::vector<ProductShape> expert_products(const OpView& op, const cpu::Machine& machine);

}  // namespace snug
