// Matrix products, of dense weights and of experts'.

#include "kernels/fp64/table.h"
#include "kernels/fp64/values.h"
#include "kernels/ops/expert_matmul.h"
#include "kernels/ops/matmul.h"

namespace snug::kernels::fp64 {
namespace {

// Products in bf16 take an fp32 operand rounded to it; that is part of the cut, as which kernel sums them is not.
double factor(const Reader& matrix, const In& of, Arithmetic arithmetic, int64_t i) {
  return arithmetic == Arithmetic::bf16 && of.dtype == DType::f32 ? rounded(matrix[i], DType::bf16) : matrix[i];
}

void matmul(const Matmul& op) {
  const Reader a(op.a), b(op.b);
  const Writer c(op.c);
  for (int64_t i = 0; i < op.m; ++i) {
    for (int64_t j = 0; j < op.n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < op.k; ++l)
        sum += factor(a, op.a, op.cut.arithmetic, op.transpose_a ? l * op.m + i : i * op.k + l) *
               factor(b, op.b, op.cut.arithmetic, op.transpose_b ? j * op.k + l : l * op.n + j);
      const int64_t at = i * op.n + j;
      c.set(at, (op.accumulate ? c[at] : 0.0) + static_cast<double>(op.scale) * sum);
    }
  }
}

// The weight of one expert; the blocks of a quantized one begin anew with each.
In weight_of(const ExpertMatmul& op, int64_t expert) {
  In weight = op.b;
  const int64_t elements = op.n * op.k;
  weight.data = static_cast<const std::byte*>(op.b.data) + expert * bytes_of(op.b.dtype, elements);
  Scales& scales = weight.scales;
  if (scales.absmax == nullptr) return weight;
  const int64_t blocks = (elements + scales.block_size - 1) / scales.block_size;
  const bool nested = scales.nested_absmax != nullptr;
  scales.absmax = static_cast<const std::byte*>(scales.absmax) + expert * blocks * (nested ? 1 : size_of(DType::f32));
  if (!nested) return weight;
  scales.nested_absmax += expert * ((blocks + kNestedBlock - 1) / kNestedBlock);
  scales.offset += expert;
  return weight;
}

// c [P, outer] = a [P, inner] times each tile's weight.
void rows_of_experts(const ExpertMatmul& op) {
  const Reader a(op.a);
  const Writer c(op.c);
  const int64_t outer = op.transpose_b ? op.n : op.k, inner = op.transpose_b ? op.k : op.n;
  for (int64_t row = 0; row < op.routed_rows; ++row) {
    const int32_t expert = op.tile_experts[row / op.tile];
    for (int64_t j = 0; j < outer; ++j) {
      if (expert < 0) {
        c.set(row * outer + j, 0.0);
        continue;
      }
      const Reader weight(weight_of(op, expert));
      double sum = op.accumulate ? c[row * outer + j] : 0.0;
      for (int64_t l = 0; l < inner; ++l) sum += a[row * inner + l] * weight[op.transpose_b ? j * op.k + l : l * op.k + j];
      c.set(row * outer + j, sum);
    }
  }
}

// c [E, N, K] += a [P, N]^T b [P, K] over each expert's rows.
void weights_of_experts(const ExpertMatmul& op) {
  const Reader a(op.a), b(op.b);
  auto* const c = static_cast<float*>(op.c.data);
  for (int64_t tile = 0; tile < op.routed_rows / op.tile; ++tile) {
    const int32_t expert = op.tile_experts[tile];
    if (expert < 0) continue;
    for (int64_t i = 0; i < op.n; ++i) {
      for (int64_t j = 0; j < op.k; ++j) {
        double sum = 0;
        for (int64_t row = tile * op.tile; row < (tile + 1) * op.tile; ++row) sum += a[row * op.n + i] * b[row * op.k + j];
        c[(expert * op.n + i) * op.k + j] += static_cast<float>(sum);
      }
    }
  }
}

void expert_matmul(const ExpertMatmul& op) { op.transpose_a ? weights_of_experts(op) : rows_of_experts(op); }

}  // namespace

const Kernel entries::matmul = plain<Matmul, fp64::matmul>();
const Kernel entries::expert_matmul = plain<ExpertMatmul, fp64::expert_matmul>();

}  // namespace snug::kernels::fp64
