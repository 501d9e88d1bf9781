// Columns of matrices: a bias added to every row and its gradient, a matrix split into column blocks and joined again.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/checked.h"
#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/table.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

#include "kernels/rows/add.h"

void add_bias_rows(const AddBias& op, int64_t begin, int64_t end) {
  with_types(op.x, op.bias, [&](auto* x, auto* bias) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) add_row(HighwayLanes(), x + i * op.cols, bias, x + i * op.cols, op.cols);
  });
}

void sum_rows(const float* rows, float* sum, int64_t begin, int64_t end, int64_t cols) {
  for (int64_t i = begin; i < end; ++i) add_row(HighwayLanes(), sum, rows + i * cols, sum, cols);
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(add_bias_rows);
HWY_EXPORT(sum_rows);

void add_bias(const AddBias& op) {
  require_storage({op.x.dtype, op.bias.dtype});
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(add_bias_rows)(op, begin, end);
  });
}

// Each part sums its rows apart; the sums are added in the order of parts.
void bias_backward(const BiasBackward& op) {
  auto* const sums = static_cast<float*>(op.workspace.data);
  require_workspace(op.workspace, op.cut.threads * op.cols * static_cast<int64_t>(sizeof(float)), "bias_backward");
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t part, int64_t begin, int64_t end) {
    std::fill_n(sums + part * op.cols, op.cols, 0.0F);
    HWY_DYNAMIC_DISPATCH(sum_rows)(op.d_out, sums + part * op.cols, begin, end, op.cols);
  });
  for (int32_t part = 0; part < op.cut.threads; ++part)
    for (int64_t j = 0; j < op.cols; ++j) op.d_bias[j] += sums[part * op.cols + j];
}

namespace {

// copy(bytes of the whole, bytes of the part, count) for every row of every part.
template <class Copy>
void for_each_piece(const ColumnParts& op, const Copy& copy) {
  const int64_t element = size_of(op.dtype);
  int64_t width = 0;
  for (const ColumnParts::Part& part : op.parts) width += part.cols;
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      auto* whole = static_cast<std::byte*>(op.whole) + i * width * element;
      for (const ColumnParts::Part& part : op.parts) {
        const int64_t bytes = part.cols * element;
        if (bytes > 0) copy(whole, static_cast<std::byte*>(part.data) + i * bytes, static_cast<size_t>(bytes));
        whole += bytes;
      }
    }
  });
}

}  // namespace

void split(const ColumnParts& op) {
  for_each_piece(op, [](std::byte* whole, std::byte* part, size_t bytes) { std::memcpy(part, whole, bytes); });
}

void join(const ColumnParts& op) {
  for_each_piece(op, [](std::byte* whole, std::byte* part, size_t bytes) { std::memcpy(whole, part, bytes); });
}

const Kernel cpu::add_bias = cpu::plain<AddBias, kernels::add_bias>();
const Kernel cpu::bias_backward = cpu::plain<BiasBackward, kernels::bias_backward>();
const Kernel cpu::split = cpu::plain<ColumnParts, kernels::split>();
const Kernel cpu::join = cpu::plain<ColumnParts, kernels::join>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
