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

// A run of parts in words: "embedding, layers 0–17, final norm".
std::string parts_text(const ModelParts& model, size_t first, size_t count);
std::string device_map_text(const DeviceMapAnswer& answer);
std::string device_map_json(const DeviceMapAnswer& answer);

}  // namespace snug
