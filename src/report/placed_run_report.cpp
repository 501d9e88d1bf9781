#include "report/placed_run_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "advise/device_parts.h"
#include "plan/away.h"
#include "program/passes/offload.h"
#include "recipe/bytes.h"
#include "recipe/keys.h"
#include "report/device_map_report.h"
#include "report/plan_json.h"
#include "report/plan_text.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kKeys[] = {"offload_weights", "offload_layers", "offload_gradients", "offload_optimizer"};

// The parts of the model, and those of them whose matrices lie on disk.
struct Placement {
  ModelParts model;
  size_t first = 0, count = 0;

  std::string near() const {
    const std::string before = parts_text(model, 0, first), behind = parts_text(model, first + count, rest());
    return count == 0 ? parts_text(model, 0, model.parts.size()) : before + ", " + behind;
  }
  std::string far() const { return parts_text(model, first, count); }
  size_t rest() const { return model.parts.size() - first - count; }
};

Placement placement_of(const Plan& plan) {
  Recipe near = plan.recipe;  // parts are read where nothing is away
  near.offload_weights = near.offload_gradients = near.offload_optimizer = near.offload_activations = false;
  near.offload_layers = {};
  Placement placement{.model = parts_of(make_plan(plan.model, near, plan.target), true)};
  const std::vector<int64_t> layers = layers_on_disk(plan.model, plan.recipe);
  const bool all = plan.recipe.offload_weights && layers.empty();
  const std::vector<ModelPart>& parts = placement.model.parts;
  const int64_t least = layers.empty() ? 0 : layers.front();
  while (placement.first < parts.size() && (parts[placement.first].layer < 0 || parts[placement.first].layer < least))
    ++placement.first;
  placement.count = all ? static_cast<size_t>(plan.model.layers) : layers.size();
  return placement;
}

// What of the recipe says that.
std::vector<std::pair<std::string, std::string>> settings_of(const Plan& plan) {
  std::vector<std::pair<std::string, std::string>> settings;
  const Recipe usual;
  for (const char* name : kKeys) {
    const std::string value = find_key(name)->get(plan.recipe);
    if (value != find_key(name)->get(usual)) settings.emplace_back(name, value);
  }
  return settings;
}

std::string far_text(const Plan& plan, const Placement& placement) {
  if (placement.count == 0) return plan.away_bytes() == 0 ? "nothing" : "what waits for its turn";
  const bool some = static_cast<int64_t>(placement.count) < plan.model.layers;
  return "matrices of " + placement.far() + (some ? "; those of the others are read from it once" : "");
}

int64_t room_of(const std::vector<DeviceRoom>& rooms, DeviceKind kind) {
  for (const DeviceRoom& room : rooms)
    if (room.kind == kind) return room.bytes;
  return 0;
}

}  // namespace

std::string placed_run_text(const Plan& plan, const std::vector<DeviceRoom>& rooms) {
  const int64_t disk = room_of(rooms, DeviceKind::disk);
  const Placement placement = placement_of(plan);
  std::string text = plan_verdict(plan) + "\n\n";
  const auto line = [&](const char* device, int64_t used, int64_t room, const std::string& holds) {
    text += fmt::format("{:<6} {:>10} of {:>10}  {}\n", device, format_bytes(used), format_bytes(room), holds);
  };
  line("cpu", plan.peak_bytes, plan.budget_bytes, placement.near());
  if (disk > 0) line("disk", plan.away_bytes(), disk, far_text(plan, placement));
  const Away away = away_of(plan.program, plan.layout);
  if (plan.away_bytes() > 0)
    text += fmt::format("a step fetches {} and sends {}\n", format_bytes(away.fetched), format_bytes(away.sent));
  if (!plan.fits()) return text;
  text += "\nsnug train with the same --max-memory runs this";
  const auto settings = settings_of(plan);
  text += settings.empty() ? "\n" : "; as keys of a recipe:\n";
  for (const auto& [key, value] : settings) text += fmt::format("  {}: {}\n", key, value);
  return text;
}

std::string placed_run_json(const Plan& plan, const std::vector<DeviceRoom>& rooms) {
  const Placement placement = placement_of(plan);
  Json json = Json::parse(plan_json(plan));
  Json& map = json["device_map"] = Json::object();
  for (size_t i = 0; i < placement.model.parts.size(); ++i)
    for (const std::string& module : placement.model.parts[i].modules)
      map[module] = i >= placement.first && i < placement.first + placement.count ? "disk" : "cpu";
  for (const std::string& module : placement.model.everywhere) map[module] = "cpu";
  Json& list = json["placement"] = Json::array();
  const auto add = [&](const char* device, DeviceKind kind, int64_t used, const std::string& parts) {
    const int64_t room = room_of(rooms, kind);
    if (room == 0) return;
    list.push_back(
        {{"device", device}, {"memory_bytes", room}, {"parts", parts}, {"used_bytes", used}, {"free_bytes", room - used}});
  };
  add("cpu", DeviceKind::host, plan.peak_bytes, placement.near());
  add("disk", DeviceKind::disk, plan.away_bytes(), placement.count == 0 ? "" : placement.far());
  Json& settings = json["settings"] = Json::object();
  for (const auto& [key, value] : settings_of(plan)) settings[key] = value;
  return json.dump(2) + "\n";
}

}  // namespace snug
