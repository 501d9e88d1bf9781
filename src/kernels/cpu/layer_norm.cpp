// layer_norm and its gradient (rows/layer_norm.h), rows split over threads.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/table.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

#include "kernels/rows/layer_norm.h"

void layer_norm_rows(const LayerNorm& op, int64_t begin, int64_t end) {
  with_types(op.x, op.weight, op.out, [&](auto* x, auto* weight, auto* out) HWY_ATTR {
    const auto* const bias = static_cast<decltype(weight)>(op.bias.data);
    for (int64_t i = begin; i < end; ++i)
      layer_norm_row(HighwayLanes(), x + i * op.cols, weight, bias, out + i * op.cols, op.mean + i, op.rstd + i, op.cols,
                     op.eps);
  });
}

// `d_weight` and `d_bias` are this part's own sums, or null.
void layer_norm_backward_rows(const LayerNormBackward& op, float* d_weight, float* d_bias, int64_t begin, int64_t end) {
  with_types(op.x, op.weight, [&](auto* x, auto* weight) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i * op.cols;
      if (op.accumulate) {
        layer_norm_backward_row<true>(HighwayLanes(), op.d_out + at, x + at, weight, op.mean[i], op.rstd[i], op.d_x + at,
                                      d_weight, d_bias, op.cols);
      } else {
        layer_norm_backward_row<false>(HighwayLanes(), op.d_out + at, x + at, weight, op.mean[i], op.rstd[i], op.d_x + at,
                                       d_weight, d_bias, op.cols);
      }
    }
  });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(layer_norm_rows);
HWY_EXPORT(layer_norm_backward_rows);

void layer_norm(const LayerNorm& op) {
  require_storage({op.x.dtype, op.weight.dtype, op.out.dtype});
  if (op.bias.dtype != op.weight.dtype) throw Error("the weight and bias of a layer_norm differ in dtype");
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(layer_norm_rows)(op, begin, end);
  });
}

// Each part sums its rows' shares of d_weight and d_bias apart; the shares are added in the order of parts.
void layer_norm_backward(const LayerNormBackward& op) {
  require_storage({op.x.dtype, op.weight.dtype});
  const bool trains = op.d_weight != nullptr;
  auto* const shares = static_cast<float*>(op.workspace.data);
  if (trains)
    require_workspace(op.workspace, 2 * op.cut.threads * op.cols * static_cast<int64_t>(sizeof(float)),
                      "layer_norm_backward");
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t part, int64_t begin, int64_t end) {
    float* const share = trains ? shares + 2 * part * op.cols : nullptr;
    if (trains) std::fill_n(share, 2 * op.cols, 0.0F);
    HWY_DYNAMIC_DISPATCH(layer_norm_backward_rows)(op, share, trains ? share + op.cols : nullptr, begin, end);
  });
  if (!trains) return;
  for (int64_t j = 0; j < op.cols; ++j) {
    for (int32_t part = 0; part < op.cut.threads; ++part) {
      op.d_weight[j] += shares[2 * part * op.cols + j];
      op.d_bias[j] += shares[(2 * part + 1) * op.cols + j];
    }
  }
}

const Kernel cpu::layer_norm = cpu::plain<LayerNorm, kernels::layer_norm>();
const Kernel cpu::layer_norm_backward = cpu::plain<LayerNormBackward, kernels::layer_norm_backward>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
