#pragma once
// A DeepSpeed configuration (https://www.deepspeed.ai/docs/config-json/): what of it decides memory.

#include <cstdint>
#include <optional>
#include <string>

namespace snug::cli {

struct DeepSpeedConfig {
  int64_t stage = 0;
  std::optional<int64_t> bucket_elements;  // zero_optimization.reduce_bucket_size; none: not said
  bool bucket_is_auto = false;             // transformers takes the square of the hidden size
  bool overlaps = false;                   // overlap_comm
  bool offloads = false;                   // optimizer states or weights lie on the host or on disk
  bool contiguous = true;                  // contiguous_gradients
};

// Throws Error for a file that cannot be read or is no such configuration.
DeepSpeedConfig read_deepspeed_config(const std::string& path);

}  // namespace snug::cli
