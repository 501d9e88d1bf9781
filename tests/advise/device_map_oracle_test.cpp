// The device maps of accelerate's infer_auto_device_map (tests/oracle/make_device_map.py), for the weights alone. Where the
// head is not tied and something lies off the accelerators, the maps are equal. Elsewhere ours keeps more near: accelerate
// reserves room for a far layer even if none need be far, and throughout for a tied head, which never moves. Where the first
// accelerator is too small for any part accelerate reserves nothing on the one that will run the far layers; we do.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "advise/device_map.h"
#include "model/config.h"

namespace snug::testing {

namespace {

using Json = nlohmann::ordered_json;

std::vector<DeviceRoom> rooms_of(const Json& c) {
  std::vector<DeviceRoom> rooms;
  for (const auto& [name, bytes] : c.at("max_memory").items())
    rooms.push_back({name, name == "cpu" ? DeviceKind::host : DeviceKind::accelerator, bytes.get<int64_t>()});
  rooms.push_back({"disk", DeviceKind::disk, int64_t{1} << 40});  // accelerate's is without limit
  return rooms;
}

std::map<std::string, std::string> modules_of(const ModelParts& model, const DeviceMap& map) {
  std::map<std::string, std::string> devices;
  for (const DeviceShare& share : map.shares)
    for (size_t i = share.first; i < share.first + share.count; ++i)
      for (const std::string& module : model.parts[i].modules) devices[module] = share.room.name;
  return devices;
}

size_t far_of(const std::map<std::string, std::string>& devices) {
  size_t far = 0;
  for (const auto& [module, device] : devices) far += device == "cpu" || device == "disk" ? 1 : 0;
  return far;
}

TEST(DeviceMapOracle, maps_are_accelerates_or_keep_more_near) {
  std::ifstream file(SNUG_SOURCE_DIR "/tests/golden/device_map.json");
  const Json golden = Json::parse(file);
  int equal = 0, cases = 0;
  for (const Json& m : golden.at("models")) {
    const ModelSpec spec = parse_config(m.at("config").dump(), m.at("name"));
    Recipe recipe;
    recipe.bf16 = true;
    recipe.seq_len = 64;
    const ModelParts model = parts_of(make_plan(spec, recipe, {.memory_bytes = 1}), true);
    EXPECT_EQ(model.weight_bytes(), m.at("bytes").get<int64_t>()) << m.at("name");
    for (const Json& c : m.at("cases")) {
      const auto map = map_devices(model, rooms_of(c));
      ASSERT_TRUE(map.has_value()) << m.at("name") << c;
      const auto ours = modules_of(model, *map);
      const auto theirs = c.at("map").get<std::map<std::string, std::string>>();
      EXPECT_EQ(ours.size(), theirs.size());
      equal += ours == theirs ? 1 : 0;
      ++cases;
      if (map->main > 0) continue;  // accelerate keeps no window on a main device that is not the first
      EXPECT_LE(far_of(ours), far_of(theirs)) << m.at("name") << c;
      if (!spec.tied_embeddings && map->far_parts > 0) {
        EXPECT_EQ(ours, theirs) << m.at("name") << c;
      }
    }
  }
  EXPECT_EQ(cases, 70);
  EXPECT_GE(equal, 35);
}

}  // namespace

}  // namespace snug::testing
