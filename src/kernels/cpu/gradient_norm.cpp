// square_sum, clip_factor and update_scale. Blocks of fixed size are summed apart, each in a fixed number of fp64 sums, then
// added in order: the result depends neither on threads nor on the width of vectors.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/table.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

// data^2 summed over n elements.
double block_square_sum(const float* data, int64_t n) {
  constexpr int64_t kSums = 16;
  double sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int64_t j = 0; j < kSums; ++j) sums[j] += static_cast<double>(data[i + j]) * static_cast<double>(data[i + j]);
  for (int64_t j = 0; i + j < n; ++j) sums[j] += static_cast<double>(data[i + j]) * static_cast<double>(data[i + j]);
  double sum = 0;
  for (double part : sums) sum += part;
  return sum;
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(block_square_sum);

void square_sum(const SquareSum& op) {
  const int64_t blocks = (op.elements + kSquareSumBlock - 1) / kSquareSumBlock;
  require_workspace(op.workspace, blocks * static_cast<int64_t>(sizeof(double)), "square_sum");
  auto* const sums = static_cast<double*>(op.workspace.data);
  for_parts(op.cut.threads, blocks, 1, [&](int32_t, int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t at = block * kSquareSumBlock;
      sums[block] = HWY_DYNAMIC_DISPATCH(block_square_sum)(op.data + at, std::min(kSquareSumBlock, op.elements - at));
    }
  });
  double& sum = op.scalars[static_cast<int32_t>(Scalar::square_sum)];
  for (int64_t block = 0; block < blocks; ++block) sum += sums[block];  // so that a buffer in parts has the same sum
}

void clip_factor(const ClipFactor& op) {
  const auto scalar = [&](Scalar which) -> double& { return op.scalars[static_cast<int32_t>(which)]; };
  const double scale = scalar(Scalar::loss_scale);
  const double norm = std::sqrt(scalar(Scalar::square_sum)) / scale;
  scalar(Scalar::gradient_norm) = norm;
  scalar(Scalar::clip_factor) = op.max_norm > 0 ? std::min(1.0, op.max_norm / (norm + 1e-6)) / scale : 1.0 / scale;
  scalar(Scalar::skip) = std::isfinite(norm) ? 0.0 : 1.0;
}

void update_scale(const UpdateScale& op) {
  const auto scalar = [&](Scalar which) -> double& { return op.scalars[static_cast<int32_t>(which)]; };
  if (scalar(Scalar::skip) != 0.0) {
    scalar(Scalar::loss_scale) *= 0.5;
    scalar(Scalar::steps_at_scale) = 0.0;
    scalar(Scalar::skips_in_a_row) += 1.0;
    return;
  }
  scalar(Scalar::skips_in_a_row) = 0.0;
  scalar(Scalar::steps_at_scale) += 1.0;
  if (scalar(Scalar::steps_at_scale) < static_cast<double>(op.window)) return;
  scalar(Scalar::steps_at_scale) = 0.0;
  const double larger = 2.0 * scalar(Scalar::loss_scale);
  if (larger <= std::numeric_limits<float>::max()) scalar(Scalar::loss_scale) = larger;
}

const Kernel cpu::square_sum = cpu::plain<SquareSum, kernels::square_sum>();
const Kernel cpu::clip_factor = cpu::plain<ClipFactor, kernels::clip_factor>();
const Kernel cpu::update_scale = cpu::plain<UpdateScale, kernels::update_scale>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
