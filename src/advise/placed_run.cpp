#include "advise/placed_run.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "advise/alternatives.h"
#include "base/error.h"

namespace snug {

namespace {

void require_placeable(const Recipe& recipe, const std::vector<DeviceRoom>& rooms) {
  if (recipe.offload_weights || recipe.offload_gradients || recipe.offload_optimizer)
    throw Error("a device map says itself what lies on disk", "--max-memory",
                "remove offload_weights, offload_gradients and offload_optimizer");
  if (recipe.memory_bytes != 0)
    throw Error("--memory and --max-memory both say what memory there is", "", "give one of them");
  if (!is_of_the_host(rooms))
    throw Error("snug trains on CPUs, and the map names an accelerator", "--max-memory", "give cpu:… and disk:… alone");
  if (rooms.front().kind != DeviceKind::host)
    throw Error("the map has no memory to compute in", "--max-memory", "add cpu:…, such as cpu:8GiB");
}

// The matrices of the last `count` blocks.
Recipe with_blocks_on_disk(Recipe recipe, int64_t count, int64_t layers) {
  if (count == 0) return recipe;
  recipe.offload_weights = true;
  if (recipe.method == Method::full) recipe.offload_gradients = recipe.offload_optimizer = true;
  if (count == layers) return recipe;
  recipe.offload_layers.resize(static_cast<size_t>(count));
  std::iota(recipe.offload_layers.begin(), recipe.offload_layers.end(), layers - count);
  return recipe;
}

}  // namespace

bool is_of_the_host(const std::vector<DeviceRoom>& rooms) {
  return std::none_of(rooms.begin(), rooms.end(),
                      [](const DeviceRoom& room) { return room.kind == DeviceKind::accelerator; });
}

Plan place_run(const ModelSpec& model, const Recipe& recipe, const Target& target, const std::vector<DeviceRoom>& rooms) {
  require_placeable(recipe, rooms);
  Recipe asked = recipe;
  asked.memory_bytes = rooms.front().bytes;
  Target given = target;
  std::optional<int64_t>& disk = given.room[static_cast<size_t>(Home::disk)];
  const int64_t most = rooms.back().kind == DeviceKind::disk ? rooms.back().bytes : 0;
  disk = std::min(disk.value_or(most), most);
  const auto plan_of = [&](int64_t count) {
    return make_plan(model, with_blocks_on_disk(asked, count, model.layers), given);
  };
  Plan plan = plan_of(0);
  const int64_t layers = model.layers;
  if (plan.fits() || most == 0 || !is_sound(with_blocks_on_disk(asked, layers, layers))) return plan;
  plan = plan_of(layers);
  if (recipe.method == Method::full || plan.peak_bytes > plan.budget_bytes) return plan;
  int64_t too_few = 0, enough = layers;  // each block on disk leaves as much more memory
  while (too_few + 1 < enough) {
    const int64_t middle = too_few + (enough - too_few) / 2;
    Plan tried = plan_of(middle);
    const bool suffices = tried.peak_bytes <= tried.budget_bytes;
    (suffices ? enough : too_few) = middle;
    if (suffices) plan = std::move(tried);
  }
  return plan;
}

}  // namespace snug
