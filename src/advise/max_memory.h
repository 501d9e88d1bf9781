#pragma once
// What the user lets each device hold: "0:80GiB,1:24GiB,cpu:200GiB,disk:1TiB", accelerate's max_memory as a flag. It knows
// no model.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

enum class DeviceKind : uint8_t { accelerator, host, disk };

struct DeviceRoom {
  std::string name;  // "0", "cpu", "disk"
  DeviceKind kind = DeviceKind::accelerator;
  int64_t bytes = 0;

  bool operator==(const DeviceRoom&) const = default;
};

// Accelerators in the order given, then the host, then the disk. Throws Error for a bad entry, a device that comes twice and
// an empty list, naming the nearest valid form.
std::vector<DeviceRoom> parse_max_memory(std::string_view text, const std::string& where = "--max-memory");

}  // namespace snug
