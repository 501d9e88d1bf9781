#include "report/device_map_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "advise/device_shortage.h"
#include "recipe/bytes.h"
#include "report/plan_json.h"

namespace snug {

std::string parts_text(const ModelParts& model, size_t first, size_t count) {
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
  const size_t end = first + count;
  for (size_t i = first; i < end; ++i) {
    if (model.parts[i].layer < 0) {
      add(model.parts[i].name);
      continue;
    }
    size_t last = i;
    while (last + 1 < end && model.parts[last + 1].layer >= 0) ++last;
    add(last == i ? model.parts[i].name : fmt::format("layers {}–{}", model.parts[i].layer, model.parts[last].layer));
    i = last;
  }
  return text.empty() ? "nothing" : text;
}

namespace {

using Json = nlohmann::ordered_json;

// As device_map has it: an index for an accelerator, a word for the rest.
Json device_json(const DeviceRoom& room) {
  return room.kind == DeviceKind::accelerator ? Json(std::stoi(room.name)) : Json(room.name);
}

Json hugging_face_map(const ModelParts& model, const DeviceMap& map) {
  Json json = Json::object();
  for (const DeviceShare& share : map.shares)
    for (size_t i = share.first; i < share.first + share.count; ++i)
      for (const std::string& module : model.parts[i].modules) json[module] = device_json(share.room);
  for (const std::string& module : model.everywhere) json[module] = device_json(map.shares[map.main].room);
  return json;
}

// The same as a Python expression, layers folded.
std::string python_map(const ModelParts& model, const DeviceMap& map) {
  std::string text = "device_map = {";
  const auto entry = [&](const std::string& key, const DeviceRoom& room) {
    text += fmt::format("\"{}\": {}, ", key, device_json(room).dump());
  };
  for (const DeviceShare& share : map.shares) {
    for (size_t i = share.first, end = share.first + share.count; i < end; ++i) {
      const ModelPart& part = model.parts[i];
      if (part.layer < 0) {
        for (const std::string& module : part.modules) entry(module, share.room);
        continue;
      }
      size_t last = i;
      while (last + 1 < end && model.parts[last + 1].layer >= 0) ++last;
      const std::string stem = part.modules.front().substr(0, part.modules.front().rfind('.') + 1);
      text += fmt::format("**{{f\"{}{{i}}\": {} for i in range({}, {})}}, ", stem, device_json(share.room).dump(),
                          part.layer, model.parts[last].layer + 1);
      i = last;
    }
  }
  for (const std::string& module : model.everywhere) entry(module, map.shares[map.main].room);
  text.resize(text.size() - 2);
  return text + "}\n";
}

std::string slow_note(const ModelParts& model, const DeviceMap& map, int64_t micro_batches, bool weights_only) {
  const DeviceShare& main = map.shares[map.main];
  std::string text;
  if (main.room.kind == DeviceKind::host && map.shares.front().room.kind == DeviceKind::accelerator)
    text += "slow: everything runs on the cpu; no accelerator holds a part with what it needs to run\n";
  if (map.far_parts == 0) return text;
  const size_t first = model.parts.size() - map.far_parts;
  const int64_t passes = weights_only ? 1 : 2 * micro_batches;
  return text + fmt::format("slow: {} are copied to {} to run, {} {}\n", parts_text(model, first, map.far_parts),
                            main.room.name, format_bytes(checked_mul(map.far_weights, passes)),
                            weights_only ? "for each forward" : "a step");
}

std::string map_text(const Plan& plan, const ModelParts& model, const DeviceMap& map, bool weights_only) {
  std::string text = fmt::format("fits: {} on {} device{}, {} off the accelerators\n\n", plan.model.name, map.shares.size(),
                                 map.shares.size() == 1 ? "" : "s",
                                 map.far_parts == 0 ? "nothing" : fmt::format("{} parts", map.far_parts));
  text += fmt::format("{:<6} {:>10} {:>10} {:>11} {:>11} {:>10}  {}\n", "device", "weights", "states", "activations",
                      "temporaries", "free", "holds");
  for (const DeviceShare& share : map.shares)
    text += fmt::format("{:<6} {:>10} {:>10} {:>11} {:>11} {:>10}  {}\n", share.room.name, format_bytes(share.weights),
                        format_bytes(share.gradients + share.optimizer), format_bytes(share.activations),
                        format_bytes(share.temporaries + share.common + share.window), format_bytes(share.free()),
                        parts_text(model, share.first, share.count));
  text += "\nstates: gradients and the optimizer's. Temporaries: the largest, with a window for what is copied in.\n";
  text += "A driver's context is not in these figures: leave room for it in --max-memory.\n";
  if (plan.away_bytes() > 0 && !weights_only)
    text += fmt::format("The optimizer's states are paged: {} on disk beside the map.\n", format_bytes(plan.away_bytes()));
  if (plan.model.vision_parameters > 0) text += "The vision tower is not in the figures.\n";
  text += slow_note(model, map, plan.program.micro_batches, weights_only);
  return text + "\n" + python_map(model, map);
}

Json placement_json(const ModelParts& model, const DeviceMap& map) {
  Json list = Json::array();
  for (const DeviceShare& share : map.shares)
    list.push_back({{"device", device_json(share.room)},
                    {"memory_bytes", share.room.bytes},
                    {"parts", share.count == 0 ? "" : parts_text(model, share.first, share.count)},
                    {"computes", share.computes},
                    {"weights", share.weights},
                    {"gradients", share.gradients},
                    {"optimizer", share.optimizer},
                    {"activations", share.activations},
                    {"temporaries", share.temporaries + share.common},
                    {"window", share.window},
                    {"free_bytes", share.free()}});
  return list;
}

std::string refusal(const DeviceMapAnswer& answer) {
  const DeviceShortage shortage = shortage_of(answer.plan, answer.model, answer.rooms, answer.weights_only);
  std::string text = fmt::format("does not fit: {} in all and {} to run the largest part, on {} of devices",
                                 format_bytes(shortage.resident_bytes), format_bytes(shortage.largest_part_bytes),
                                 format_bytes(shortage.devices_bytes));
  std::string fix = shortage.change;
  if (!shortage.larger_device.empty()) fix += (fix.empty() ? "" : ", or ") + shortage.larger_device;
  return text + (fix.empty() ? "" : "; fits with " + fix);
}

}  // namespace

std::string device_map_text(const DeviceMapAnswer& answer) {
  return answer.map ? map_text(answer.plan, answer.model, *answer.map, answer.weights_only) : refusal(answer) + "\n";
}

std::string device_map_json(const DeviceMapAnswer& answer) {
  Json json = Json::parse(plan_json(answer.plan));
  json["fits"] = answer.map.has_value();
  if (!answer.map) json["reason"] = refusal(answer);
  json["device_map"] = answer.map ? hugging_face_map(answer.model, *answer.map) : Json();
  json["placement"] = answer.map ? placement_json(answer.model, *answer.map) : Json();
  return json.dump(2) + "\n";
}

}  // namespace snug
