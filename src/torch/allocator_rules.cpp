#include "torch/allocator_rules.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"

namespace snug {
namespace {

constexpr int64_t kBlock = 512;  // bytes; the least block, and what blocks are multiples of

// The divisions that hold for `bytes`: PyTorch's table starts at 1 MiB and ends at 32 GiB, and its ends hold beyond.
int64_t divisions_of(int64_t bytes, const AllocatorSettings& settings) {
  const auto log = std::bit_width(static_cast<uint64_t>(bytes)) - 1;
  return settings.roundup_divisions[static_cast<size_t>(std::clamp<int64_t>(log - 20, 0, 15))];
}

// The next of `divisions` steps between two powers of two.
int64_t round_to_division(int64_t bytes, int64_t divisions) {
  if (bytes <= 4 || divisions <= 1 || std::has_single_bit(static_cast<uint64_t>(bytes))) return bytes;
  const auto floor = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes)));
  const int64_t step = floor / divisions;
  return step == 0 ? bytes : align_up(bytes, step);
}

}  // namespace

AllocatorSettings settings_of(const RecordedSettings& recorded) {
  AllocatorSettings settings;
  if (recorded.max_split_bytes > 0) settings.max_split_bytes = recorded.max_split_bytes;
  settings.roundup_divisions = recorded.roundup_divisions;
  for (int64_t& divisions : settings.roundup_divisions)
    if (divisions < 0 || divisions > kSmallRequest) divisions = 0;
  if (recorded.max_non_split_rounding_bytes > 0)
    settings.max_non_split_rounding_bytes = recorded.max_non_split_rounding_bytes;
  if (recorded.large_segment_bytes > 0) settings.large_segment_bytes = recorded.large_segment_bytes;
  if (recorded.garbage_collection_threshold > 0 && recorded.garbage_collection_threshold < 1)
    settings.garbage_collection_threshold = recorded.garbage_collection_threshold;
  settings.expandable_segments = recorded.expandable_segments;
  return settings;
}

int64_t rounded_bytes(int64_t bytes, const AllocatorSettings& settings) {
  if (bytes < kBlock) return kBlock;
  const int64_t divisions = divisions_of(bytes, settings);
  if (divisions > 1 && bytes > kBlock * divisions) return align_up(round_to_division(bytes, divisions), kBlock);
  return align_up(bytes, kBlock);
}

int64_t segment_bytes(int64_t rounded, const AllocatorSettings& settings) {
  if (is_small(rounded)) return kSmallSegment;
  if (rounded < kLeastOwnSegment) return settings.large_segment_bytes;
  return align_up(rounded, kSmallSegment);
}

int64_t page_bytes(bool small, const AllocatorSettings& settings) {
  return small ? kSmallSegment : settings.large_segment_bytes;
}

bool splits(int64_t held, int64_t rounded, bool small, bool expandable, const AllocatorSettings& settings) {
  const int64_t rest = held - rounded;
  if (small || expandable) return rest >= kBlock;
  return rounded < settings.max_split_bytes && rest > kSmallRequest;
}

}  // namespace snug
