#pragma once
// The text of PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF: "key:value,key:[a:b,c:d]" (c10/core/AllocatorConfig.cpp,
// c10/cuda/CUDAAllocatorConfig.cpp, 2.0 to 2.15). A snapshot's file holds it beside a table that leaves settings out.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

// What changes sizes or places of blocks; nothing where the text does not say or says nonsense.
struct AllocatorConfig {
  std::optional<int64_t> max_split_bytes, max_non_split_rounding_bytes, large_segment_bytes;
  std::optional<double> garbage_collection_threshold, memory_fraction;
  std::optional<bool> expandable_segments;
  std::optional<std::array<int64_t, 16>> roundup_divisions;  // of 2^i MiB … 2^(i+1) MiB
  bool native = true;                                        // false: backend:cudaMallocAsync, another allocator altogether
  std::vector<std::string> unknown;                          // keys of which nothing is known here, at most 16
};

// Never throws for what the text holds.
AllocatorConfig read_allocator_config(std::string_view text);

}  // namespace snug
