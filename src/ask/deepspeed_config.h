#pragma once
// A DeepSpeed configuration (https://www.deepspeed.ai/docs/config-json/): what of it decides memory.

#include <cstdint>
#include <optional>
#include <string>

namespace snug {

// A number of elements; where it is "auto", transformers fills it in.
struct DeepSpeedSize {
  std::optional<int64_t> elements;  // none: not said, or auto
  bool is_auto = false;
};

struct DeepSpeedConfig {
  int64_t stage = 0;
  DeepSpeedSize bucket, prefetch, persistent, most_live, reuse, sub_group;  // of zero_optimization
  bool overlaps = false;                                                    // overlap_comm
  bool offloads = false;         // optimizer states or weights lie on the host or on disk
  bool contiguous = true;        // contiguous_gradients
  std::optional<bool> own_adam;  // whether its optimizer, Adam or AdamW, is by DeepSpeed's kernels; none: it names no such
};

// Throws Error for a file that cannot be read or is no such configuration.
DeepSpeedConfig read_deepspeed_config(const std::string& path);

}  // namespace snug
