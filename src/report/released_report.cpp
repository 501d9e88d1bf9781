#include "report/released_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace snug {

namespace {

// Neighbouring layers that make the same again.
struct AlikeLayers {
  int64_t first = 0, count = 0;
  std::set<StorageId> released;
};

std::vector<AlikeLayers> alike(const Released& released) {
  std::vector<AlikeLayers> runs;
  for (const auto& [layer, storages] : released) {
    if (runs.empty() || runs.back().first + runs.back().count != layer || runs.back().released != storages)
      runs.push_back({layer, 0, storages});
    ++runs.back().count;
  }
  return runs;
}

std::vector<std::string> names_of(const Program& program, const std::set<StorageId>& storages) {
  std::vector<std::string> names;
  for (StorageId id : storages) names.push_back(program.storage(id).name);
  return names;
}

}  // namespace

std::string released_text(const Plan& plan) {
  std::string text;
  for (const AlikeLayers& run : alike(plan.released)) {
    const std::string layers = run.count == 1 ? fmt::format("layer {}", run.first)
                                              : fmt::format("layers {} – {}", run.first, run.first + run.count - 1);
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", layers, fmt::join(names_of(plan.program, run.released), ", "));
  }
  if (!text.empty() && plan.step_time.seconds > 0)
    text += fmt::format("; {:.1f} % of the step", 100 * plan.released_seconds / plan.step_time.seconds);
  return text;
}

nlohmann::ordered_json released_json(const Plan& plan) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const AlikeLayers& run : alike(plan.released))
    list.push_back({{"first_layer", run.first}, {"layers", run.count}, {"tensors", names_of(plan.program, run.released)}});
  return list;
}

}  // namespace snug
