// rope_table and rope. Angles are products in fp32, like Hugging Face's; the C library's sine and cosine are right to the
// last bit or nearly so.

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

#include "kernels/rows/rope.h"

void rope_rows(const Rope& op, int64_t begin, int64_t end) {
  const int64_t half = op.half;
  with_type(op.x, [&](auto* x) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t h = 0; h < op.heads; ++h)
        rope_head(HighwayLanes(), x + (i * op.heads + h) * op.head_size, op.cosine + i * half, op.sine + i * half,
                  op.inverse ? -1.0F : 1.0F, half);
  });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(rope_rows);

void rope_table(const RopeTable& op) {
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < op.half; ++j) {
        const float angle = static_cast<float>(op.positions[i]) * op.inverse_frequency[j];
        op.cosine[i * op.half + j] = op.scale * std::cos(angle);
        op.sine[i * op.half + j] = op.scale * std::sin(angle);
      }
    }
  });
}

void rope(const Rope& op) {
  require_storage({op.x.dtype});
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(rope_rows)(op, begin, end);
  });
}

const Kernel cpu::rope_table = cpu::plain<RopeTable, kernels::rope_table>();
const Kernel cpu::rope = cpu::plain<Rope, kernels::rope>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
