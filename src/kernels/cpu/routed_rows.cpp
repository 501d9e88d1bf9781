// gather_rows, combine and their gradients (rows/routed_rows.h): tokens split over threads, each of which touches its own
// tokens' rows; then rows of padding, likewise.

#include <cstdint>
#include <cstring>

#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/table.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

#include "kernels/rows/add.h"
#include "kernels/rows/routed_rows.h"

void gather_tokens(const GatherRows& op, int64_t begin, int64_t end) {
  with_types(op.x, op.out, [&](auto* x, auto* out) HWY_ATTR {
    for (int64_t i = begin * op.choices; i < end * op.choices; ++i)
      if (op.expert_rows[i] >= 0)
        copy_row(HighwayLanes(), x + i / op.choices * op.cols, out + op.expert_rows[i] * op.cols, op.cols);
  });
}

void gather_backward_tokens(const GatherRowsBackward& op, int64_t begin, int64_t end) {
  for (int64_t m = begin; m < end; ++m) {
    const int32_t* const at = op.expert_rows + m * op.choices;
    float* const d_x = op.d_x + m * op.cols;
    if (op.accumulate) {
      sum_rows_row<true>(HighwayLanes(), op.d_out, at, op.choices, d_x, op.cols);
    } else {
      sum_rows_row<false>(HighwayLanes(), op.d_out, at, op.choices, d_x, op.cols);
    }
  }
}

void combine_tokens(const Combine& op, int64_t begin, int64_t end) {
  with_types(op.x, op.out, [&](auto* x, auto* out) HWY_ATTR {
    for (int64_t m = begin; m < end; ++m)
      weighted_sum_row(HighwayLanes(), x, op.expert_rows + m * op.choices, op.route_weights + m * op.choices, op.choices,
                       out + m * op.cols, op.cols);
  });
}

void combine_backward_tokens(const CombineBackward& op, int64_t begin, int64_t end) {
  with_type(op.x, [&](auto* x) HWY_ATTR {
    for (int64_t i = begin * op.choices; i < end * op.choices; ++i) {
      if (op.expert_rows[i] < 0) {
        if (op.d_route_weights != nullptr) op.d_route_weights[i] = 0.0F;
        continue;
      }
      const float* const d_out = op.d_out + i / op.choices * op.cols;
      const int64_t at = op.expert_rows[i] * op.cols;
      if (op.d_route_weights != nullptr) op.d_route_weights[i] = dot_row(HighwayLanes(), d_out, x + at, op.cols);
      if (op.d_x != nullptr) scale_row(HighwayLanes(), d_out, op.route_weights[i], op.d_x + at, op.cols);
    }
  });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(gather_tokens);
HWY_EXPORT(gather_backward_tokens);
HWY_EXPORT(combine_tokens);
HWY_EXPORT(combine_backward_tokens);

namespace {

void clear_padding(const int32_t* row_tokens, const Out& rows, int64_t routed_rows, int64_t cols, int32_t threads) {
  const int64_t bytes = cols * size_of(rows.dtype);
  for_parts(threads, routed_rows, 1, [&](int32_t, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      if (row_tokens[row] < 0) std::memset(static_cast<char*>(rows.data) + row * bytes, 0, static_cast<size_t>(bytes));
  });
}

}  // namespace

void gather_rows(const GatherRows& op) {
  require_storage({op.x.dtype, op.out.dtype});
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(gather_tokens)(op, begin, end);
  });
  clear_padding(op.row_tokens, op.out, op.routed_rows, op.cols, op.cut.threads);
}

void gather_rows_backward(const GatherRowsBackward& op) {
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(gather_backward_tokens)(op, begin, end);
  });
}

void combine(const Combine& op) {
  require_storage({op.x.dtype, op.out.dtype});
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(combine_tokens)(op, begin, end);
  });
}

void combine_backward(const CombineBackward& op) {
  require_storage({op.x.dtype});
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(combine_backward_tokens)(op, begin, end);
  });
  if (op.d_x != nullptr) clear_padding(op.row_tokens, {op.d_x}, op.routed_rows, op.cols, op.cut.threads);
}

const Kernel cpu::gather_rows = cpu::plain<GatherRows, kernels::gather_rows>();
const Kernel cpu::gather_rows_backward = cpu::plain<GatherRowsBackward, kernels::gather_rows_backward>();
const Kernel cpu::combine = cpu::plain<Combine, kernels::combine>();
const Kernel cpu::combine_backward = cpu::plain<CombineBackward, kernels::combine_backward>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
