#include "report/saved_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/units.h"

namespace snug {

namespace {

// Neighbouring layers of which the same becomes the same.
struct AlikeLayers {
  int64_t first = 0, count = 0;
  std::set<StorageId> storages;
};

std::vector<AlikeLayers> alike(const SavedByLayer& saved) {
  std::vector<AlikeLayers> runs;
  for (const auto& [layer, storages] : saved) {
    if (runs.empty() || runs.back().first + runs.back().count != layer || runs.back().storages != storages)
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

std::vector<std::string> parts_of(const Plan& plan, const SavedByLayer& saved) {
  std::vector<std::string> parts;
  for (const AlikeLayers& run : alike(saved)) {
    const std::string layers = run.count == 1 ? fmt::format("layer {}", run.first)
                                              : fmt::format("layers {} – {}", run.first, run.first + run.count - 1);
    parts.push_back(fmt::format("{}: {}", layers, fmt::join(names_of(plan.program, run.storages), ", ")));
  }
  return parts;
}

}  // namespace

std::string saved_text(const Plan& plan, const TextStyle& style) {
  std::vector<std::string> again = parts_of(plan, plan.saved.released), away = parts_of(plan, plan.saved.away);
  if (plan.saved.inputs > 0) again.push_back(fmt::format("inputs of blocks: {} are kept at once", plan.saved.inputs));
  if (plan.saved.inputs_away) away.emplace_back("the input of every block");
  if (plan.step_time.seconds > 0 && !plan.saved.keeps_all())
    (away.empty() ? again : away)
        .push_back(fmt::format("{:.1f} % of the step", 100 * plan.saved_seconds / plan.step_time.seconds));
  std::string text;
  if (!again.empty()) text += "made again " + wrapped(fmt::format("{}", fmt::join(again, "; ")), style.width, 11) + "\n";
  if (!away.empty()) text += "on disk    " + wrapped(fmt::format("{}", fmt::join(away, "; ")), style.width, 11) + "\n";
  return text;
}

nlohmann::ordered_json saved_json(const Plan& plan, const SavedByLayer& saved) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const AlikeLayers& run : alike(saved))
    list.push_back({{"first_layer", run.first}, {"layers", run.count}, {"tensors", names_of(plan.program, run.storages)}});
  return list;
}

}  // namespace snug
