// rms_norm and its gradient (rows/rms_norm.h), rows split over threads.

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

#include "kernels/rows/rms_norm.h"
#include "kernels/rows/rms_norm_backward.h"

void rms_norm_rows(const RmsNorm& op, int64_t begin, int64_t end) {
  with_types(op.x, op.weight, op.out, [&](auto* x, auto* weight, auto* out) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i)
      op.rstd[i] =
          rms_norm_row(HighwayLanes(), x + i * op.cols, weight, out + i * op.cols, op.cols, op.eps, op.weight_offset);
  });
}

// `d_weight` is this part's own sum, or null.
void rms_norm_backward_rows(const RmsNormBackward& op, float* d_weight, int64_t begin, int64_t end) {
  with_types(op.x, op.weight, [&](auto* x, auto* weight) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i * op.cols;
      if (op.accumulate) {
        rms_norm_backward_row<true>(HighwayLanes(), op.d_out + at, x + at, weight, op.rstd[i], op.weight_offset, op.d_x + at,
                                    d_weight, op.cols);
      } else {
        rms_norm_backward_row<false>(HighwayLanes(), op.d_out + at, x + at, weight, op.rstd[i], op.weight_offset,
                                     op.d_x + at, d_weight, op.cols);
      }
    }
  });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(rms_norm_rows);
HWY_EXPORT(rms_norm_backward_rows);

void rms_norm(const RmsNorm& op) {
  require_storage({op.x.dtype, op.weight.dtype, op.out.dtype});
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(rms_norm_rows)(op, begin, end);
  });
}

// Each part sums its rows' share of d_weight apart; the shares are added in the order of parts.
void rms_norm_backward(const RmsNormBackward& op) {
  require_storage({op.x.dtype, op.weight.dtype});
  const bool weight_wanted = op.d_weight != nullptr;
  auto* const shares = static_cast<float*>(op.workspace.data);
  if (weight_wanted)
    require_workspace(op.workspace, op.cut.threads * op.cols * static_cast<int64_t>(sizeof(float)), "rms_norm_backward");
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t part, int64_t begin, int64_t end) {
    float* const share = weight_wanted ? shares + part * op.cols : nullptr;
    if (weight_wanted) std::fill_n(share, op.cols, 0.0F);
    HWY_DYNAMIC_DISPATCH(rms_norm_backward_rows)(op, share, begin, end);
  });
  if (!weight_wanted) return;
  for (int64_t j = 0; j < op.cols; ++j) {
    float sum = 0;
    for (int32_t part = 0; part < op.cut.threads; ++part) sum += shares[part * op.cols + j];
    op.d_weight[j] += sum;
  }
}

const Kernel cpu::rms_norm = cpu::plain<RmsNorm, kernels::rms_norm>();
const Kernel cpu::rms_norm_backward = cpu::plain<RmsNormBackward, kernels::rms_norm_backward>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
