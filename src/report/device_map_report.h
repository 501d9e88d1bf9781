#pragma once
// A device map as text with the `device_map` to paste, and as JSON beside the plan's; or why there is none.

#include <optional>
#include <string>
#include <vector>

#include "advise/device_map.h"

namespace snug {

struct DeviceMapAnswer {
  const Plan& plan;
  const ModelParts& model;
  const std::vector<DeviceRoom>& rooms;
  bool weights_only = false;
  std::optional<DeviceMap> map;  // none: nothing fits
};

std::string device_map_text(const DeviceMapAnswer& answer);
std::string device_map_json(const DeviceMapAnswer& answer);

}  // namespace snug
