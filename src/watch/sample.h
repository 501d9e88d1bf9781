#pragma once
// One look at a memory: how much of it is used, of how much, and by whom.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace snug {

struct MemoryUser {
  int64_t pid = 0;
  std::string name;              // of its program; empty if it cannot be seen, as from inside of a container
  std::optional<int64_t> bytes;  // none: the driver does not tell
};

struct MemorySample {
  std::string what;  // "GPU 0, NVIDIA H100 80GB HBM3", "process 4711, python3"
  int64_t used_bytes = 0;
  int64_t limit_bytes = 0;            // of a process: what it has and what is still available to it
  std::optional<int64_t> peak_bytes;  // of a process: the most it ever had
  std::vector<MemoryUser> users;      // of a device, largest first

  double share() const { return limit_bytes > 0 ? static_cast<double>(used_bytes) / static_cast<double>(limit_bytes) : 0.0; }
};

}  // namespace snug
