// Adafactor of one weight (rows/adafactor.h) in passes over its gradient: means of rows and columns, the size of the whole
// update, the update. Every sum has one order, whatever the number of threads.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/table.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

#ifndef SNUG_KERNELS_CPU_ADAFACTOR_ONCE  // this file is read once for each instruction set
#define SNUG_KERNELS_CPU_ADAFACTOR_ONCE
namespace snug::kernels {
constexpr int64_t kAdafactorColumns = 64;  // of a matrix that one thread sums at a time
inline int64_t column_groups(int64_t cols) { return (cols + kAdafactorColumns - 1) / kAdafactorColumns; }
}  // namespace snug::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

#include "kernels/rows/adafactor.h"

AdafactorStep adafactor_step(const Adafactor& op) {
  const auto scalar = [&](Scalar which) { return op.scalars[static_cast<int32_t>(which)]; };
  const double fresh = std::pow(scalar(Scalar::step), -0.8);
  return {.gradient_factor = static_cast<float>(scalar(Scalar::clip_factor)),
          .kept = static_cast<float>(1.0 - fresh),
          .fresh = static_cast<float>(fresh)};
}

// Rows of all matrices, counted through.
void adafactor_row_means(const Adafactor& op, int64_t begin, int64_t end) {
  const AdafactorStep step = adafactor_step(op);
  for (int64_t row = begin; row < end; ++row) {
    const float sum = adafactor_squares(HighwayLanes(), step.gradient_factor, op.gradient + row * op.cols, nullptr, op.cols);
    const float now = sum / static_cast<float>(op.cols) + kLeastSquare;
    op.row_factor[row] = step.kept * op.row_factor[row] + step.fresh * now;
  }
}

// Groups of columns of all matrices, counted through.
void adafactor_column_means(const Adafactor& op, int64_t begin, int64_t end) {
  const AdafactorStep step = adafactor_step(op);
  const int64_t groups = column_groups(op.cols);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t matrix = unit / groups, column = unit % groups * kAdafactorColumns;
    adafactor_columns(HighwayLanes(), step, op.gradient + matrix * op.rows * op.cols + column, op.rows, op.cols,
                      op.column_factor + matrix * op.cols + column, std::min(kAdafactorColumns, op.cols - column));
  }
}

// What a row's update is multiplied by: 1 / sqrt(row mean / mean of row means).
double row_scale(const Adafactor& op, const double* means, int64_t row) {
  if (op.row_factor == nullptr) return 1.0;
  return std::sqrt(means[row / op.rows] / op.row_factor[row]);
}

void adafactor_row_sizes(const Adafactor& op, const double* means, double* sizes, int64_t begin, int64_t end) {
  const AdafactorStep step = adafactor_step(op);
  for (int64_t row = begin; row < end; ++row) {
    const float sum = adafactor_squares(HighwayLanes(), step.gradient_factor, op.gradient + row * op.cols,
                                        op.column_factor + row / op.rows * op.cols, op.cols);
    const double scale = row_scale(op, means, row);
    sizes[row] = scale * scale * sum;
  }
}

void adafactor_update_rows(const Adafactor& op, const double* means, double step_size, int64_t begin, int64_t end) {
  const auto decay = static_cast<float>(1.0 - op.scalars[static_cast<int32_t>(Scalar::learning_rate)] * op.weight_decay);
  with_type(op.parameter, [&](auto* parameter) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row * op.cols;
      const auto scale = static_cast<float>(step_size * row_scale(op, means, row));
      const float* const column = op.column_factor + row / op.rows * op.cols;
      if (op.master != nullptr) {
        adafactor_update(HighwayLanes(), decay, scale, op.master + at, parameter + at, op.gradient + at, column, op.cols);
      } else {
        adafactor_update(HighwayLanes(), decay, scale, parameter + at, parameter + at, op.gradient + at, column, op.cols);
      }
    }
  });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(adafactor_row_means);
HWY_EXPORT(adafactor_column_means);
HWY_EXPORT(adafactor_row_sizes);
HWY_EXPORT(adafactor_update_rows);

void adafactor(const Adafactor& op) {
  const int64_t rows = op.matrices * op.rows;
  require_storage({op.parameter.dtype});
  require_workspace(op.workspace, (rows + op.matrices) * static_cast<int64_t>(sizeof(double)), "adafactor");
  auto* const means = static_cast<double*>(op.workspace.data);
  double* const sizes = means + op.matrices;
  const auto over_rows = [&](const auto& work) {
    for_parts(op.cut.threads, rows, 1, [&](int32_t, int64_t begin, int64_t end) { work(begin, end); });
  };
  if (op.row_factor != nullptr)
    over_rows([&](int64_t begin, int64_t end) { HWY_DYNAMIC_DISPATCH(adafactor_row_means)(op, begin, end); });
  const int64_t groups = op.matrices * column_groups(op.cols);
  for_parts(op.cut.threads, groups, 1, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(adafactor_column_means)(op, begin, end);
  });
  for (int64_t matrix = 0; matrix < op.matrices && op.row_factor != nullptr; ++matrix) {
    means[matrix] = 0;
    for (int64_t row = 0; row < op.rows; ++row) means[matrix] += op.row_factor[matrix * op.rows + row];
    means[matrix] /= static_cast<double>(op.rows);
  }
  over_rows([&](int64_t begin, int64_t end) { HWY_DYNAMIC_DISPATCH(adafactor_row_sizes)(op, means, sizes, begin, end); });
  double square = 0;
  for (int64_t row = 0; row < rows; ++row) square += sizes[row];
  const double size = std::sqrt(square / static_cast<double>(rows * op.cols));
  const auto scalar = [&](Scalar which) { return op.scalars[static_cast<int32_t>(which)]; };
  const double step_size = scalar(Scalar::learning_rate) * scalar(Scalar::clip_factor) / std::max(size, 1.0);
  over_rows([&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(adafactor_update_rows)(op, means, step_size, begin, end);
  });
}

const Kernel cpu::adafactor = cpu::plain<Adafactor, kernels::adafactor>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
