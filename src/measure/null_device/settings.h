#pragma once
// What the null devices pretend to be: read once from the environment, which `snug measure` sets. All devices of a process
// are alike.

#include <cstdint>
#include <string>
#include <vector>

namespace snug::null_device {

struct Settings {
  std::string name = "snug null device";  // SNUG_NULL_NAME
  int64_t memory_bytes = 85094039552;     // SNUG_NULL_MEMORY: what a process can have on an idle card
  int64_t context_bytes = 0;              // SNUG_NULL_CONTEXT: of those, what CUDA's context takes
  std::vector<int64_t> others_bytes;      // SNUG_NULL_OTHERS: what each of other processes holds of every device, "5,7"
  bool lists_processes = true;            // SNUG_NULL_LISTS: NVML tells them; in a container it often does not
  int32_t compute_capability = 80;        // SNUG_NULL_SM: times ten
  int32_t multiprocessors = 108;          // SNUG_NULL_MULTIPROCESSORS
  int32_t devices = 1;                    // SNUG_NULL_DEVICES; CUDA_VISIBLE_DEVICES chooses among them

  int64_t free_at_first() const;  // of a device, when the program begins
};

const Settings& settings();

// What follows from the compute capability (CUDA C++ Programming Guide, "Compute Capabilities").
struct Architecture {
  int32_t major, minor;
  int32_t threads, blocks;                   // resident on a multiprocessor
  int32_t shared_bytes, block_shared_bytes;  // on a multiprocessor; of one block that asks for it
  int32_t l2_bytes;
};

Architecture architecture();

}  // namespace snug::null_device
