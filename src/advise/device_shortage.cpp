#include "advise/device_shortage.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace snug {

namespace {

// Changes to the recipe that leave the result the same, or nearly, in the order of what they cost.
std::string cheapest_change(const Plan& plan, const std::vector<DeviceRoom>& rooms, bool weights_only) {
  struct Candidate {
    std::string flag;
    std::function<void(Recipe&)> change;
  };
  std::vector<Candidate> candidates;
  const Recipe& now = plan.recipe;
  if (!weights_only && !now.gradient_checkpointing)
    candidates.push_back({"--gradient-checkpointing true", [](Recipe& r) { r.gradient_checkpointing = true; }});
  if (!weights_only && now.batch > 1)
    candidates.push_back({fmt::format("--batch 1 --accum {}", now.batch * now.accumulation), [](Recipe& r) {
                            r.accumulation *= r.batch;
                            r.batch = 1;
                          }});
  if (!now.bf16 && !now.fp16) candidates.push_back({"--bf16", [](Recipe& r) { r.bf16 = true; }});
  if (now.method == Method::lora && !now.quantize.any())
    candidates.push_back({"--load-in-4bit", [](Recipe& r) { r.quantize.in_4bit = true; }});
  Recipe all = now;
  std::string flags;
  for (const Candidate& candidate : candidates) {  // alone, then each with those before it
    for (const bool together : {false, true}) {
      Recipe recipe = together ? all : now;
      candidate.change(recipe);
      std::string named = together && !flags.empty() ? flags + " " + candidate.flag : candidate.flag;
      const ModelParts parts = parts_of(make_plan(plan.model, recipe, plan.target), weights_only);
      if (map_devices(parts, rooms)) return named;
      if (together) {
        all = recipe;
        flags = std::move(named);
      }
    }
  }
  return "";
}

// A device that would be enough, "cpu:140GiB": the last one made larger, or a host.
std::string larger_room(const ModelParts& model, std::vector<DeviceRoom> rooms) {
  const auto shown = [](const DeviceRoom& room, int64_t bytes) {
    constexpr int64_t kMiBInGiB = 1024;
    const int64_t mib = bytes >> 20;
    return mib > 10 * kMiBInGiB ? fmt::format("{}:{}GiB", room.name, (mib + kMiBInGiB - 1) / kMiBInGiB)
                                : fmt::format("{}:{}MiB", room.name, mib);
  };
  if (rooms.back().kind != DeviceKind::accelerator)
    if (const auto bytes = least_room(model, rooms, rooms.size() - 1)) return shown(rooms.back(), *bytes);
  const auto is_host = [](const DeviceRoom& room) { return room.kind == DeviceKind::host; };
  auto host = std::find_if(rooms.begin(), rooms.end(), is_host);
  if (host == rooms.end()) {
    const auto disk = std::find_if(rooms.begin(), rooms.end(), [](const auto& r) { return r.kind == DeviceKind::disk; });
    host = rooms.insert(disk, {.name = "cpu", .kind = DeviceKind::host, .bytes = 1});
  }
  const DeviceRoom room = *host;
  const auto bytes = least_room(model, rooms, static_cast<size_t>(host - rooms.begin()));
  return bytes ? shown(room, *bytes) : "";
}

}  // namespace

DeviceShortage shortage_of(const Plan& plan, const ModelParts& model, const std::vector<DeviceRoom>& rooms,
                           bool weights_only) {
  DeviceShortage shortage{.resident_bytes = model.common_bytes};
  for (const DeviceRoom& room : rooms) shortage.devices_bytes += std::min(room.bytes, int64_t{1} << 56);
  for (const ModelPart& part : model.parts) {
    shortage.resident_bytes += part.resident() + part.activations;
    shortage.largest_part_bytes =
        std::max(shortage.largest_part_bytes, part.weights + part.gradients + part.activations + part.temporaries);
  }
  shortage.change = cheapest_change(plan, rooms, weights_only);
  shortage.larger_device = larger_room(model, rooms);
  return shortage;
}

}  // namespace snug
