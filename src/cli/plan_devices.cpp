#include "cli/plan_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "advise/device_map.h"
#include "base/error.h"
#include "cli/plan_json.h"
#include "cli/target_flags.h"
#include "model/catalogue.h"
#include "recipe/bytes.h"
#include "recipe/keys.h"

namespace snug::cli {

namespace {

using Json = nlohmann::ordered_json;

// "embedding, layers 0–17, final norm".
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
  if (plan.layout.disk_bytes > 0 && !weights_only)
    text +=
        fmt::format("The optimizer's states are paged: {} on disk beside the map.\n", format_bytes(plan.layout.disk_bytes));
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

std::string refusal(const Plan& plan, const ModelParts& model, const std::vector<DeviceRoom>& rooms, bool weights_only) {
  int64_t room = 0, need = model.common_bytes, one = 0;
  for (const DeviceRoom& r : rooms) room += std::min(r.bytes, int64_t{1} << 56);
  for (const ModelPart& part : model.parts) {
    need += part.resident() + part.activations;
    one = std::max(one, part.weights + part.gradients + part.activations + part.temporaries);
  }
  std::string text = fmt::format("does not fit: {} in all and {} to run the largest part, on {} of devices",
                                 format_bytes(need), format_bytes(one), format_bytes(room));
  std::string fix = cheapest_change(plan, rooms, weights_only);
  if (const std::string more = larger_room(model, rooms); !more.empty()) fix += (fix.empty() ? "" : ", or ") + more;
  return text + (fix.empty() ? "" : "; fits with " + fix);
}

}  // namespace

std::vector<std::string> device_flags() { return {"max-memory=", "weights-only"}; }

int plan_devices(const Arguments& arguments) {
  validate(arguments.recipe);
  const std::vector<DeviceRoom> rooms = parse_max_memory(arguments.flags.at("max-memory"));
  const bool weights_only = arguments.has("weights-only");
  const Plan plan = make_plan(resolve_model(arguments.recipe.model), arguments.recipe, target_for(arguments));
  const ModelParts model = parts_of(plan, weights_only);
  const std::optional<DeviceMap> map = map_devices(model, rooms);
  std::string text;
  if (arguments.has("json")) {
    Json json = Json::parse(plan_json(plan));
    json["fits"] = map.has_value();
    if (!map) json["reason"] = refusal(plan, model, rooms, weights_only);
    json["device_map"] = map ? hugging_face_map(model, *map) : Json();
    json["placement"] = map ? placement_json(model, *map) : Json();
    text = json.dump(2) + "\n";
  } else {
    text = map ? map_text(plan, model, *map, weights_only) : refusal(plan, model, rooms, weights_only) + "\n";
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return map ? 0 : 3;
}

}  // namespace snug::cli
