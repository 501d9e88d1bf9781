#include "ask/plan_devices.h"

#include "advise/device_map.h"
#include "advise/placed_run.h"
#include "ask/target_flags.h"
#include "base/error.h"
#include "model/catalogue.h"
#include "recipe/keys.h"
#include "report/device_map_report.h"
#include "report/placed_run_report.h"

namespace snug {

std::vector<std::string> device_flags() { return {"max-memory=", "weights-only"}; }

namespace {

// For snug's own engine.
int plan_placed_run(const Arguments& arguments, const std::vector<DeviceRoom>& rooms, Asker& asker) {
  Target target = target_for(arguments);
  target.room = {};  // the map says what the disk has
  const Plan plan = place_run(resolve_model(arguments.recipe.model), arguments.recipe, target, rooms);
  const std::string text = arguments.has("json") ? placed_run_json(plan, rooms) : placed_run_text(plan, rooms);
  asker.print(text);
  return plan.fits() ? 0 : 3;
}

}  // namespace

int plan_devices(const Arguments& arguments, Asker& asker) {
  const Recipe& recipe = arguments.recipe;
  validate(recipe);
  const std::vector<DeviceRoom> rooms = parse_max_memory(arguments.value("max-memory"));
  const bool weights_only = arguments.has("weights-only");
  if (is_of_the_host(rooms) && !weights_only && !arguments.has("gpu")) return plan_placed_run(arguments, rooms, asker);
  if (recipe.offload_activations || recipe.offload_weights || recipe.offload_gradients)
    throw Error("a device map says itself what lies on disk", "--max-memory",
                "remove offload_activations, offload_weights and offload_gradients");
  const Plan plan = make_plan(resolve_model(recipe.model), recipe, target_for(arguments));
  const ModelParts model = parts_of(plan, weights_only);
  const DeviceMapAnswer answer{plan, model, rooms, weights_only, map_devices(model, rooms)};
  const std::string text = arguments.has("json") ? device_map_json(answer) : device_map_text(answer);
  asker.print(text);
  return answer.map ? 0 : 3;
}

}  // namespace snug
