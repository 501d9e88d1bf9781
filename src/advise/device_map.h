#pragma once
// Device map: which part of a model lies on which device, in the order of the forward pass (transformers' and accelerate's
// device_map). Accelerators are filled in the order given; what does not fit there lies on the host, then on the disk, and
// is copied in to run on the first device that holds a part, as accelerate does. No part is split. Of all maps that keep the
// order it takes one with the fewest parts off the accelerators, then with the fewest on disk.

#include <optional>
#include <string>
#include <vector>

#include "advise/device_parts.h"
#include "advise/max_memory.h"

namespace snug {

// What one device gets.
struct DeviceShare {
  DeviceRoom room;
  size_t first = 0, count = 0;  // parts [first, first + count)
  bool computes = false;
  int64_t weights = 0, gradients = 0, optimizer = 0, activations = 0, temporaries = 0, common = 0;
  int64_t window = 0;  // largest part that is copied in, with its gradients

  int64_t used() const {
    int64_t sum = 0;
    for (int64_t part : {weights, gradients, optimizer, activations, temporaries, common, window})
      sum = checked_add(sum, part);
    return sum;
  }
  int64_t free() const { return room.bytes - used(); }
};

struct DeviceMap {
  std::vector<DeviceShare> shares;  // one for each room, in its order
  size_t main = 0;                  // the share that runs what lies on devices that do not compute
  int64_t far_weights = 0;          // bytes that are copied in for each forward, and again for each backward
  size_t far_parts = 0;
};

// `rooms`: as parse_max_memory returns them. None if no map fits.
std::optional<DeviceMap> map_devices(const ModelParts& model, const std::vector<DeviceRoom>& rooms);

// The least size of the room `at`, all others as they are, with which a map fits, in whole MiB; none if it is not what
// lacks.
std::optional<int64_t> least_room(const ModelParts& model, const std::vector<DeviceRoom>& rooms, size_t at);

}  // namespace snug
