#pragma once
// The arithmetic of PyTorch's CUDA caching allocator (c10/cuda/CUDACachingAllocator.cpp: round_size, get_allocation_size,
// should_split): how large a block and a segment become. Knows no state.

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "torch/snapshot.h"

namespace snug {

struct AllocatorSettings {
  int64_t max_split_bytes = std::numeric_limits<int64_t>::max();  // blocks of this size and more are never split
  int64_t max_non_split_rounding_bytes = int64_t{20} << 20U;      // what such a block may be larger than asked
  int64_t large_segment_bytes = int64_t{20} << 20U;               // of a segment for requests between 1 and 10 MiB
  std::array<int64_t, 16> roundup_divisions{};                    // of 2^i MiB … 2^(i+1) MiB; 0 and 1: off
  bool expandable_segments = false;
  bool prefers_older_segments = false;      // of blocks that fit equally well; PyTorch 2.12 and later
  double garbage_collection_threshold = 0;  // share of the allowed bytes from which garbage is collected; 0: off
  int64_t limit_bytes = std::numeric_limits<int64_t>::max();  // what can be reserved: the device's, less what others hold
  std::optional<int64_t> allowed_bytes;                       // set_per_process_memory_fraction, in bytes
};

// As a snapshot's file says, without limits, which no file tells.
AllocatorSettings settings_of(const RecordedSettings& recorded);

inline constexpr int64_t kSmallRequest = int64_t{1} << 20U;  // at most: small pool
inline constexpr int64_t kSmallSegment = int64_t{2}
                                         << 20U;  // bytes of a small segment, and what large ones are multiples of
inline constexpr int64_t kLeastOwnSegment = int64_t{10} << 20U;  // requests from here on get a segment of their own size

// Bytes of the block for a request of `bytes` (0 counts as 1).
int64_t rounded_bytes(int64_t bytes, const AllocatorSettings& settings);

inline bool is_small(int64_t rounded) { return rounded <= kSmallRequest; }

// Bytes of a new segment for a block of `rounded` bytes; of a page of an expandable one.
int64_t segment_bytes(int64_t rounded, const AllocatorSettings& settings);
int64_t page_bytes(bool small, const AllocatorSettings& settings);

// True if a block of `held` bytes, taken for `rounded`, gives back the rest.
bool splits(int64_t held, int64_t rounded, bool small, bool expandable, const AllocatorSettings& settings);

}  // namespace snug
