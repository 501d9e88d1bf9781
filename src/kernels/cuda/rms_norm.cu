// rms_norm on a GPU: the row kernel of rows/rms_norm.h, one warp a row. cut.threads is the CPU's; a row's sum has one order
// here whatever the launch.

#include <cstdint>

#include "kernels/cuda/cuda_lanes.cuh"
#include "kernels/ops/rms_norm.h"

namespace snug::kernels {
namespace {

#include "kernels/rows/rms_norm.h"

constexpr int kWarps = 4;  // rows of one block

template <class X, class Weight, class Y>
__global__ void rms_norm_rows(const X* x, const Weight* weight, Y* out, float* rstd, int64_t rows, int64_t cols, float eps,
                              float offset) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / WarpLanes::kWidth;
  if (row >= rows) return;  // a whole warp at once
  const float scale = rms_norm_row(WarpLanes(), x + row * cols, weight, out + row * cols, cols, eps, offset);
  if (WarpLanes::first()) rstd[row] = scale;
}

template <class X, class Weight, class Y>
void launch(const RmsNorm& op) {
  const auto blocks = static_cast<unsigned>((op.rows + kWarps - 1) / kWarps);
  rms_norm_rows<<<blocks, kWarps * WarpLanes::kWidth>>>(
      static_cast<const X*>(op.x.data), static_cast<const Weight*>(op.weight.data), static_cast<Y*>(op.out.data), op.rstd,
      op.rows, op.cols, op.eps, op.weight_offset);
}

template <class X, class Weight>
void launch_for_out(const RmsNorm& op) {
  op.out.dtype == DType::bf16 ? launch<X, Weight, Bf16>(op) : launch<X, Weight, float>(op);
}

template <class X>
void launch_for_weight(const RmsNorm& op) {
  op.weight.dtype == DType::bf16 ? launch_for_out<X, Bf16>(op) : launch_for_out<X, float>(op);
}

}  // namespace

void rms_norm(const RmsNorm& op) {
  if (op.rows == 0) return;
  op.x.dtype == DType::bf16 ? launch_for_weight<Bf16>(op) : launch_for_weight<float>(op);
}

}  // namespace snug::kernels
