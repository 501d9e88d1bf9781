#include "advise/device_choice.h"

#include <algorithm>
#include <cstdlib>

#include "plan/accelerator_target.h"

namespace snug {

Target nearest_target(int64_t capacity_bytes) {
  const auto distance = [&](const Accelerator& card) {
    if (card.compute_capability == 0) return INT64_MAX;
    const int64_t off = std::abs(card.usable_bytes - capacity_bytes);
    return card.compute_capability < 80 ? off + capacity_bytes / 32 : off;
  };
  Target target = target_of(*std::ranges::min_element(accelerators(), {}, distance));
  target.memory_bytes = capacity_bytes;
  return target;
}

}  // namespace snug
