#pragma once
// Where no device map fits: what it needs, and what would help: the cheapest changes of the recipe, or a larger device.

#include <cstdint>
#include <string>
#include <vector>

#include "advise/device_map.h"

namespace snug {

struct DeviceShortage {
  int64_t resident_bytes = 0;      // all parts, with what their backward needs
  int64_t largest_part_bytes = 0;  // to run one part
  int64_t devices_bytes = 0;       // what there is
  std::string change;              // of the recipe, as flags: "--gradient-checkpointing true"; empty: none is enough
  std::string larger_device;       // "cpu:140GiB"; empty: no device is what lacks
};

// `model`: the parts of `plan`, cut likewise.
DeviceShortage shortage_of(const Plan& plan, const ModelParts& model, const std::vector<DeviceRoom>& rooms,
                           bool weights_only);

}  // namespace snug
