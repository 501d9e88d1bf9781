#include "cli/plan_devices.h"

#include <cstdio>

#include "advise/device_map.h"
#include "base/error.h"
#include "cli/target_flags.h"
#include "model/catalogue.h"
#include "recipe/keys.h"
#include "report/device_map_report.h"

namespace snug::cli {

std::vector<std::string> device_flags() { return {"max-memory=", "weights-only"}; }

int plan_devices(const Arguments& arguments) {
  const Recipe& recipe = arguments.recipe;
  validate(recipe);
  if (recipe.offload_activations || recipe.offload_weights || recipe.offload_gradients)
    throw Error("a device map says itself what lies on disk", "--max-memory",
                "remove offload_activations, offload_weights and offload_gradients");
  const std::vector<DeviceRoom> rooms = parse_max_memory(arguments.value("max-memory"));
  const bool weights_only = arguments.has("weights-only");
  const Plan plan = make_plan(resolve_model(recipe.model), recipe, target_for(arguments));
  const ModelParts model = parts_of(plan, weights_only);
  const DeviceMapAnswer answer{plan, model, rooms, weights_only, map_devices(model, rooms)};
  const std::string text = arguments.has("json") ? device_map_json(answer) : device_map_text(answer);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return answer.map ? 0 : 3;
}

}  // namespace snug::cli
