// add and zero: flat buffers, elements split over threads.

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

void add_part(const Add& op, int64_t begin, int64_t end) {
  with_types(op.a, op.b, op.out, [&](auto* a, auto* b, auto* out) HWY_ATTR {
    add_row(HighwayLanes(), a + begin, b + begin, out + begin, end - begin);
  });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(add_part);

namespace {}  // namespace

void add(const Add& op) {
  require_storage({op.a.dtype, op.b.dtype, op.out.dtype});
  for_parts(op.cut.threads, op.elements, kLineGrain, [&](int32_t, int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(add_part)(op, begin, end);
  });
}

void zero(const Zero& op) {
  for_parts(op.cut.threads, op.elements, kLineGrain, [&](int32_t, int64_t begin, int64_t end) {
    if (begin < end) std::memset(op.data + begin, 0, static_cast<size_t>(end - begin) * sizeof(float));
  });
}

const Kernel cpu::add = cpu::plain<Add, kernels::add>();
const Kernel cpu::zero = cpu::plain<Zero, kernels::zero>();

}  // namespace snug::kernels
#endif  // HWY_ONCE
