#include "program/ops/cuda_workspace.h"

#include <algorithm>

#include "program/rules.h"

namespace snug {

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kProductBytes = 32 * kMiB;  // cuBLASLt's limit; NVIDIA advises 32 MiB from Hopper on
constexpr int64_t kPanelBytes = 64 * kMiB;    // of a quantized matrix as numbers
constexpr int64_t kLogitsBytes = 256 * kMiB;  // of a chunk of rows, fp32
constexpr int64_t kLeastLossRows = 128;       // fewer would starve the product
constexpr int64_t kNormRows = 256;            // partial sums of a norm's weight gradient, one row a block of threads

// Numbers of one matrix that a quantized product multiplies.
int64_t panel_bytes(const Program& program, const Op& op) {
  if (op.find(Slot::absmax) == kNone) return 0;
  const Tensor& matrix = program.tensor(op.find(Slot::b));
  const int64_t matrices = matrix.shape.size() == 3 ? matrix.dim(0) : 1;
  return std::min(kPanelBytes, bytes_of(op.attributes.values, matrix.elements() / matrices));
}

int64_t loss_bytes(const Program& program, const Op& op) {
  const Tensor& weight = program.tensor(op.find(Slot::weight));
  const int64_t rows = program.tensor(op.find(Slot::hidden)).elements() / weight.dim(1);
  const int64_t row_bytes = weight.dim(0) * size_of(DType::f32);
  const int64_t chunk = std::min(rows, std::max(kLeastLossRows, kLogitsBytes / row_bytes));
  return checked_add(kProductBytes, checked_mul(chunk, row_bytes));
}

int64_t attention_backward_bytes(const Program& program, const Op& op) {
  const Tensor& q = program.tensor(op.find(Slot::q));
  const int64_t sums = q.dtype == DType::f32 ? 0 : bytes_of(DType::f32, q.elements());
  return checked_add(sums, bytes_of(DType::f32, q.elements() / q.dim(3)));  // and a dot product for each query
}

}  // namespace

int64_t cuda_workspace_bytes(const Program& program, const Op& op) {
  switch (op.kind) {
    case OpKind::matmul:
    case OpKind::expert_matmul: return kProductBytes + panel_bytes(program, op);
    case OpKind::head_loss: return loss_bytes(program, op);
    case OpKind::attention_backward: return attention_backward_bytes(program, op);
    case OpKind::rms_norm_backward:
    case OpKind::layer_norm_backward:
      if (op.find(Slot::d_weight) == kNone) return 0;
      return bytes_of(DType::f32, kNormRows * program.tensor(op.find(Slot::d_x)).shape.back().bound);
    case OpKind::square_sum:
    case OpKind::adafactor:
    case OpKind::route: return rule_of(op.kind).workspace(program, op, 1);
    default: return 0;
  }
}

}  // namespace snug
