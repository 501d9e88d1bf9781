// A map without accelerators: as few blocks on the disk as fit the memory, by plans of every number of them.

#include "advise/placed_run.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "base/error.h"
#include "model/catalogue.h"
#include "plan/support_machines.h"
#include "program/passes/offload.h"
#include "sanitized.h"

namespace snug::testing {

namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;

std::vector<DeviceRoom> placed_rooms(int64_t memory, int64_t disk) {
  std::vector<DeviceRoom> rooms = {{"cpu", DeviceKind::host, memory}};
  if (disk > 0) rooms.push_back({"disk", DeviceKind::disk, disk});
  return rooms;
}

ModelSpec placed_model() { return *find_model("HuggingFaceTB/SmolLM2-135M"); }

Recipe placed_recipe() {
  Recipe recipe;
  recipe.method = Method::lora;
  recipe.bf16 = true;
  recipe.seq_len = 128;
  return recipe;
}

size_t blocks_on_disk(const Plan& plan) {
  if (!plan.recipe.offload_weights) return 0;
  const size_t named = layers_on_disk(plan.model, plan.recipe).size();
  return named == 0 ? static_cast<size_t>(plan.model.layers) : named;
}

// Every number of blocks, one after the other.
std::optional<size_t> fewest_on_disk(const Target& target, int64_t memory, int64_t disk) {
  Target given = target;
  given.room[static_cast<size_t>(Home::disk)] = disk;
  for (int64_t count = 0; count <= placed_model().layers; ++count) {
    Recipe recipe = placed_recipe();
    recipe.memory_bytes = memory;
    recipe.offload_weights = count > 0;
    for (int64_t layer = placed_model().layers - count; layer < placed_model().layers && count < placed_model().layers;
         ++layer)
      recipe.offload_layers.push_back(layer);
    if (make_plan(placed_model(), recipe, given).fits()) return static_cast<size_t>(count);
  }
  return std::nullopt;
}

TEST(PlacedRun, has_as_few_blocks_on_disk_as_any_that_fits) {
  const Target target = target_with(int64_t{1} << 40);
  std::set<size_t> seen;
  for (const int64_t memory : {600, 330, 300, 250, 200, 150, 120, 100})
    for (const int64_t disk : testing::thinned(std::vector<int64_t>{1000, 100, 0}, 3)) {
      const Plan plan =
          place_run(placed_model(), placed_recipe(), target, placed_rooms(memory * kMebibyte, disk * kMebibyte));
      const std::optional<size_t> wanted = fewest_on_disk(target, memory * kMebibyte, disk * kMebibyte);
      EXPECT_EQ(plan.fits(), wanted.has_value()) << memory << " " << disk;
      if (!wanted) continue;
      EXPECT_EQ(blocks_on_disk(plan), *wanted) << memory << " " << disk;
      EXPECT_LE(plan.peak_bytes, memory * kMebibyte);
      EXPECT_LE(plan.away_bytes(), disk * kMebibyte);
      seen.insert(*wanted);
    }
  EXPECT_GE(seen.size(), testing::kSanitized ? 3U : 4U) << "budgets that tell maps apart";
}

TEST(PlacedRun, full_fine_tuning_has_all_blocks_there_or_none) {
  const Target target = target_with(int64_t{1} << 40);
  Recipe recipe = placed_recipe();
  recipe.method = Method::full;
  const Plan roomy = place_run(placed_model(), recipe, target, placed_rooms(8192 * kMebibyte, 8192 * kMebibyte));
  EXPECT_TRUE(roomy.fits());
  EXPECT_EQ(roomy.away_bytes(), 0);
  const Plan tight = place_run(placed_model(), recipe, target, placed_rooms(1024 * kMebibyte, 8192 * kMebibyte));
  EXPECT_TRUE(tight.fits());
  EXPECT_TRUE(tight.recipe.offload_weights && tight.recipe.offload_gradients && tight.recipe.offload_optimizer);
  EXPECT_TRUE(tight.recipe.offload_layers.empty());
  recipe.optimizer_in_bwd = true;  // does not go with it
  recipe.max_grad_norm = 0;
  EXPECT_FALSE(place_run(placed_model(), recipe, target, placed_rooms(256 * kMebibyte, 8192 * kMebibyte)).fits());
}

TEST(PlacedRun, refuses_what_it_cannot_run) {
  const Target target = target_with(int64_t{1} << 40);
  const std::vector<DeviceRoom> rooms = placed_rooms(1024 * kMebibyte, 1024 * kMebibyte);
  std::vector<DeviceRoom> with_card = rooms;
  with_card.insert(with_card.begin(), {"0", DeviceKind::accelerator, 1024 * kMebibyte});
  EXPECT_THROW(place_run(placed_model(), placed_recipe(), target, with_card), Error);
  EXPECT_THROW(place_run(placed_model(), placed_recipe(), target, {rooms.back()}), Error);
  Recipe recipe = placed_recipe();
  recipe.offload_weights = true;
  EXPECT_THROW(place_run(placed_model(), recipe, target, rooms), Error);
  recipe = placed_recipe();
  recipe.memory_bytes = 1024 * kMebibyte;
  EXPECT_THROW(place_run(placed_model(), recipe, target, rooms), Error);
}

}  // namespace

}  // namespace snug::testing
