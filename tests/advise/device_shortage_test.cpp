#include "advise/device_shortage.h"

#include <gtest/gtest.h>

#include "advise/device_choice.h"
#include "model/catalogue.h"
#include "recipe/bytes.h"
#include "recipe/keys.h"

namespace snug::testing {

namespace {

Plan plan_of(const Recipe& recipe) {
  return make_plan(*find_model("HuggingFaceTB/SmolLM2-135M"), recipe, {.threads = 1, .memory_bytes = int64_t{1} << 40});
}

Recipe long_rows() {
  Recipe recipe;
  recipe.batch = 4;
  recipe.seq_len = 1024;
  return recipe;
}

// The words of a shortage's change, as flags.
Recipe with_flags(Recipe recipe, const std::string& flags) {
  for (size_t begin = flags.find("--"); begin != std::string::npos;) {
    const size_t next = flags.find(" --", begin);
    const std::string word = flags.substr(begin + 2, next == std::string::npos ? next : next - begin - 2);
    const size_t blank = word.find(' ');
    apply(recipe, word.substr(0, blank), blank == std::string::npos ? "true" : word.substr(blank + 1));
    begin = next == std::string::npos ? next : next + 1;
  }
  return recipe;
}

TEST(DeviceShortage, the_change_that_it_names_fits) {
  const std::vector<DeviceRoom> rooms{{"0", DeviceKind::accelerator, int64_t{2} << 30}};
  const Plan plan = plan_of(long_rows());
  const ModelParts model = parts_of(plan);
  ASSERT_FALSE(map_devices(model, rooms).has_value());
  const DeviceShortage shortage = shortage_of(plan, model, rooms, false);
  ASSERT_FALSE(shortage.change.empty());
  EXPECT_TRUE(map_devices(parts_of(plan_of(with_flags(long_rows(), shortage.change))), rooms).has_value())
      << shortage.change;
  EXPECT_EQ(shortage.devices_bytes, rooms[0].bytes);
  EXPECT_GT(shortage.resident_bytes, shortage.largest_part_bytes);
}

TEST(DeviceShortage, the_device_that_it_names_is_enough) {
  std::vector<DeviceRoom> rooms{{"0", DeviceKind::accelerator, int64_t{512} << 20},
                                {"cpu", DeviceKind::host, int64_t{64} << 20}};
  const Plan plan = plan_of(long_rows());
  const ModelParts model = parts_of(plan);
  ASSERT_FALSE(map_devices(model, rooms).has_value());
  const std::string larger = shortage_of(plan, model, rooms, false).larger_device;
  ASSERT_TRUE(larger.starts_with("cpu:")) << larger;
  rooms[1].bytes = parse_bytes(larger.substr(4));
  EXPECT_TRUE(map_devices(model, rooms).has_value()) << larger;
}

TEST(DeviceChoice, a_size_stands_for_the_nearest_card_with_exactly_that_memory) {
  const int64_t bytes = int64_t{79} << 30;
  const Target target = nearest_target(bytes);
  EXPECT_EQ(target.memory_bytes, bytes);
  EXPECT_EQ(target.kind, TargetKind::cuda);
  EXPECT_TRUE(target.cost.known());
  EXPECT_NE(nearest_target(int64_t{11} << 30).name, target.name);
}

}  // namespace

}  // namespace snug::testing
