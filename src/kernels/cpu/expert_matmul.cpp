// expert_matmul: one `matmul` for neighbouring tiles of one expert. Which tiles go together follows from the routing alone,
// and products in bf16 sum alike on any number of threads, so that the same cut gives the same bits.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/table.h"
#include "kernels/cpu/tiles.h"

namespace snug::kernels {
namespace {

bool multiplies_in_bf16(const ExpertMatmul& op) { return in_bf16(op.cut.arithmetic); }

// The weight of one expert. The blocks of a quantized one begin anew with each.
In weight_of(const ExpertMatmul& op, int64_t expert) {
  const int64_t elements = op.n * op.k;
  if (!is_quantized(op.b)) return at(op.b, expert * elements);
  In weight = op.b;
  const Scales& all = op.b.scales;
  const int64_t blocks = (elements + all.block_size - 1) / all.block_size;
  const int64_t size = all.nested_absmax == nullptr ? size_of(DType::f32) : size_of(DType::u8);
  weight.data = static_cast<const char*>(op.b.data) + expert * bytes_of(op.b.dtype, elements);
  weight.scales.absmax = static_cast<const char*>(all.absmax) + expert * blocks * size;
  if (all.nested_absmax == nullptr) return weight;
  weight.scales.nested_absmax = all.nested_absmax + expert * ((blocks + kNestedBlock - 1) / kNestedBlock);
  weight.scales.offset = all.offset + expert;
  return weight;
}

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
  product.b = weight_of(op, expert);
  product.c = at(op.c, row * outer);
  product.m = rows, product.n = outer, product.k = inner;
  return product;
}

// Tiles to multiply together where so many of one expert follow.
int64_t tiles_together(const ExpertMatmul& op, int64_t left) {
  if (multiplies_in_bf16(op)) return std::min(left, op.cut.span);
  int64_t tiles = op.cut.span;
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

// All tiles of one expert, or all that no expert has.
struct Share {
  int64_t first = 0, count = 0;
  int32_t expert = -1;
};

Share share_at(const ExpertMatmul& op, int64_t tile) {
  const int32_t* const end = op.tile_experts + op.routed_rows / op.tile;
  const int32_t* const begin = op.tile_experts + tile;
  const auto differs = [begin](int32_t expert) { return expert != *begin; };
  return {tile, std::find_if(begin, end, differs) - begin, *begin};
}

void multiply(const ExpertMatmul& op, const Share& share, Products& products) {
  for (int64_t done = 0, count = 0; done < share.count; done += count) {
    count = tiles_together(op, share.count - done);
    matmul(product_of(op, (share.first + done) * op.tile, count, share.expert), products);
  }
}

// The op as one of its threads runs it for a few experts, in its part of the workspace.
ExpertMatmul for_worker(const ExpertMatmul& op, int32_t worker) {
  ExpertMatmul own = op;
  own.workspace.bytes = op.workspace.bytes / op.cut.threads / 64 * 64;
  own.workspace.data = static_cast<char*>(op.workspace.data) + worker * own.workspace.bytes;
  own.cut.threads = 1;
  return own;
}

}  // namespace

void prepare(const ExpertMatmul& op, Products& products) {
  for (int64_t tiles = op.cut.span; tiles > 0; tiles = multiplies_in_bf16(op) ? tiles - 1 : tiles / 2) {
    prepare(product_of(op, 0, tiles, 0), products);
    if (op.cut.apart) prepare(product_of(for_worker(op, 0), 0, tiles, 0), products);
  }
}

void expert_matmul(const ExpertMatmul& op, Products& products) {
  require_storage({op.a.dtype, values_of(op.b), op.c.dtype});
  const int64_t tiles = op.routed_rows / op.tile;
  const int64_t used = tiles - std::count(op.tile_experts, op.tile_experts + tiles, -1);
  // A thread that is last with a share waits for no one longer than half of its own time.
  const auto is_apart = [&](const Share& share) { return op.cut.apart && 2 * share.count * op.cut.threads <= used; };
  for (int64_t tile = 0; tile < tiles;) {
    const Share share = share_at(op, tile);
    tile += share.count;
    if (share.expert >= 0) {
      if (!is_apart(share)) multiply(op, share, products);
    } else if (!op.transpose_a && !op.accumulate) {
      clear_rows(op, share.first * op.tile, share.count * op.tile);
    }
  }
  if (!op.cut.apart) return;
  for_units(op.cut.threads, tiles, [&](int32_t worker, int64_t tile) {
    if (op.tile_experts[tile] < 0 || (tile > 0 && op.tile_experts[tile - 1] == op.tile_experts[tile])) return;
    const Share share = share_at(op, tile);
    if (is_apart(share)) multiply(for_worker(op, worker), share, products);
  });
}

const Kernel cpu::expert_matmul = cpu::with_products<ExpertMatmul, kernels::prepare, kernels::expert_matmul>();

}  // namespace snug::kernels
