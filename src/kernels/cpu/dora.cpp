// DoRA: lengths of the rows of W + s B A, made a piece at a time, and columns scaled by magnitude / length.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/dequantize.h"
#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/table.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"
#include "kernels/cpu/weight_rows.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

#include "kernels/rows/dora.h"

// Rows [begin, end) of a weight [out, in], kDoraPanel numbers of a row at a time.
void norms_of_rows(const DoraNorm& op, float* panel, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    double squares = 0;
    for (int64_t at = 0; at < op.cols; at += kDoraPanel) {
      const int64_t n = std::min(kDoraPanel, op.cols - at);
      widen_weight(op.weight, row * op.cols + at, n, panel);
      for (int64_t r = 0; r < op.rank; ++r)
        add_scaled(HighwayLanes(), op.scale * op.b[row * op.rank + r], op.a + r * op.cols + at, panel, n);
      squares += static_cast<double>(square_sum_row(HighwayLanes(), panel, n));
    }
    op.norm[row] = static_cast<float>(std::sqrt(squares));
  }
}

// Outputs [begin, end), at most kDoraColumns, of a weight [in, out]. part: [s B turned, rank x kDoraColumns] [A's column]
// [sums] [lost in the sums] [row].
void norms_of_columns(const DoraNorm& op, float* part, int64_t begin, int64_t end) {
  const int64_t n = end - begin;
  float* const turned = part;
  float* const sums = part + op.rank * (kDoraColumns + 1);
  float* const lost = sums + kDoraColumns;
  float* const row = lost + kDoraColumns;
  for (int64_t r = 0; r < op.rank; ++r)
    for (int64_t j = 0; j < n; ++j) turned[r * kDoraColumns + j] = op.scale * op.b[(begin + j) * op.rank + r];
  std::fill_n(sums, n, 0.0F);
  std::fill_n(lost, n, 0.0F);
  for (int64_t i = 0; i < op.cols; ++i) {
    widen_weight(op.weight, i * op.rows + begin, n, row);
    for (int64_t r = 0; r < op.rank; ++r)
      add_scaled(HighwayLanes(), op.a[r * op.cols + i], turned + r * kDoraColumns, row, n);
    add_squares(HighwayLanes(), row, sums, lost, n);
  }
  for (int64_t j = 0; j < n; ++j) op.norm[begin + j] = std::sqrt(sums[j]);
}

void scale_rows(const ScaleColumns& op, const float* gains, int64_t begin, int64_t end) {
  with_types(op.x, op.out, [&](auto* x, auto* out) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) multiply_row(HighwayLanes(), x + i * op.cols, gains, out + i * op.cols, op.cols);
  });
}

void scale_backward_rows(const ScaleColumnsBackward& op, const float* gains, float* sums, int64_t begin, int64_t end) {
  with_type(op.x, [&](auto* x) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i * op.cols;
      scale_backward_row(HighwayLanes(), op.d_out + at, x + at, gains, op.d_x + at, sums, op.cols);
    }
  });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(norms_of_rows);
HWY_EXPORT(norms_of_columns);
HWY_EXPORT(scale_rows);
HWY_EXPORT(scale_backward_rows);

namespace {

constexpr auto kFloat = static_cast<int64_t>(sizeof(float));

void fill_gains(const float* magnitude, const float* norm, float* gains, int64_t count) {
  for (int64_t j = 0; j < count; ++j) gains[j] = magnitude[j] / norm[j];
}

}  // namespace

void dora_norm(const DoraNorm& op) {
  require_storage({values_of(op.weight)});
  const int64_t floats = op.input_features_first ? (kDoraColumns + 1) * op.rank + 3 * kDoraColumns : kDoraPanel;
  require_workspace(op.workspace, op.cut.threads * floats * kFloat, "dora_norm");
  auto* const parts = static_cast<float*>(op.workspace.data);
  if (!op.input_features_first) {
    for_parts(op.cut.threads, op.rows, 1, [&](int32_t part, int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(norms_of_rows)(op, parts + part * floats, begin, end);
    });
    return;
  }
  for_parts(op.cut.threads, op.rows, kDoraColumns, [&](int32_t part, int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += kDoraColumns)
      HWY_DYNAMIC_DISPATCH(norms_of_columns)(op, parts + part * floats, at, std::min(at + kDoraColumns, end));
  });
}

void scale_columns(const ScaleColumns& op) {
  require_storage({op.x.dtype, op.out.dtype});
  require_workspace(op.workspace, op.cols * kFloat, "scale_columns");
  auto* const gains = static_cast<float*>(op.workspace.data);
  fill_gains(op.magnitude, op.norm, gains, op.cols);
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(scale_rows)(op, gains, begin, end);
  });
}

// Each part sums its rows apart; the sums are added in the order of parts.
void scale_columns_backward(const ScaleColumnsBackward& op) {
  require_storage({op.x.dtype});
  require_workspace(op.workspace, (op.cut.threads + int64_t{1}) * op.cols * kFloat, "scale_columns_backward");
  auto* const gains = static_cast<float*>(op.workspace.data);
  float* const sums = gains + op.cols;
  fill_gains(op.magnitude, op.norm, gains, op.cols);
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t part, int64_t begin, int64_t end) {
    std::fill_n(sums + part * op.cols, op.cols, 0.0F);
    HWY_DYNAMIC_DISPATCH(scale_backward_rows)(op, gains, sums + part * op.cols, begin, end);
  });
  for (int64_t j = 0; j < op.cols; ++j) {
    float sum = 0;
    for (int32_t part = 0; part < op.cut.threads; ++part) sum += sums[part * op.cols + j];
    op.d_magnitude[j] += sum / op.norm[j];
  }
}

const Kernel cpu::dora_norm = cpu::plain<DoraNorm, kernels::dora_norm>();
const Kernel cpu::scale_columns = cpu::plain<ScaleColumns, kernels::scale_columns>();
const Kernel cpu::scale_columns_backward = cpu::plain<ScaleColumnsBackward, kernels::scale_columns_backward>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
