#include "targets/cuda/workspace.h"

#include <algorithm>

#include "base/checked.h"
#include "targets/cpu/sizing.h"

namespace snug::cuda {

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kProductBytes = 32 * kMiB;  // cuBLASLt's limit; NVIDIA advises 32 MiB from Hopper on
constexpr int64_t kPanelBytes = 64 * kMiB;    // of a quantized matrix as numbers
constexpr int64_t kLogitsBytes = 256 * kMiB;  // of a chunk of rows, fp32
constexpr int64_t kLeastLossRows = 128;       // fewer would starve the product
constexpr int64_t kNormRows = 256;            // partial sums of a norm's weight gradient, one row a block of threads

// And the numbers of one quantized matrix that it multiplies.
int64_t product(const OpView& op) {
  if (!op.has(Slot::absmax)) return kProductBytes;
  const OperandView& matrix = op[Slot::b];
  const int64_t matrices = matrix.axes == 3 ? matrix.dim(0) : 1;
  return kProductBytes + std::min(kPanelBytes, bytes_of(op.attributes.values, matrix.elements / matrices));
}

int64_t head_loss(const OpView& op) {
  const OperandView& weight = op[Slot::weight];
  const int64_t rows = op[Slot::hidden].elements / weight.dim(1);
  const int64_t row_bytes = weight.dim(0) * size_of(DType::f32);
  const int64_t chunk = std::min(rows, std::max(kLeastLossRows, kLogitsBytes / row_bytes));
  return checked_add(kProductBytes, checked_mul(chunk, row_bytes));
}

int64_t attention_backward(const OpView& op) {
  const OperandView& q = op[Slot::q];
  const int64_t sums = q.dtype == DType::f32 ? 0 : bytes_of(DType::f32, q.elements);
  return checked_add(sums, bytes_of(DType::f32, q.elements / q.dim(3)));  // and a dot product for each query
}

int64_t norm_backward(const OpView& op) {
  return op.has(Slot::d_weight) ? bytes_of(DType::f32, kNormRows * op[Slot::d_x].last_dim()) : 0;
}

int64_t as_one_thread(const OpView& op) { return cpu::sizing_of(op.kind).workspace(op, {}); }

}  // namespace

int64_t workspace_bytes(const OpView& op) {
  struct Entry {
    OpKind kind;
    int64_t (*bytes)(const OpView& op);
  };
  static constexpr Entry kEntries[] = {{OpKind::matmul, product},
                                       {OpKind::expert_matmul, product},
                                       {OpKind::head_loss, head_loss},
                                       {OpKind::attention_backward, attention_backward},
                                       {OpKind::rms_norm_backward, norm_backward},
                                       {OpKind::layer_norm_backward, norm_backward},
                                       {OpKind::square_sum, as_one_thread},
                                       {OpKind::adafactor, as_one_thread},
                                       {OpKind::route, as_one_thread}};
  for (const Entry& entry : kEntries)
    if (entry.kind == op.kind) return entry.bytes(op);
  return 0;
}

}  // namespace snug::cuda
