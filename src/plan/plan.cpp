#include "plan/plan.h"

#include <algorithm>
#include <map>

#include "plan/workspaces.h"
#include "program/compile.h"
#include "program/rules.h"

namespace snug {

namespace {

double flops_of(const Program& program, const Region& region) {
  double sum = 0;
  for (const Item& item : region.items) {
    if (const Op* op = item.op()) sum += rule_of(op->kind).work(program, *op).flops;
    if (const Region* child = item.region()) sum += flops_of(program, *child);
  }
  return sum * static_cast<double>(region.count);
}

void add_up_peak(Plan& plan) {
  const Layout& layout = plan.layout;
  for (const Storage& storage : plan.program.storages)
    if (storage.lifetime == Lifetime::run)
      plan.breakdown[static_cast<size_t>(storage.role)] += align_up(storage.bytes, kAlignment);
  for (const Life& life : layout.timeline.lives)
    if (life.birth <= layout.peak_time && layout.peak_time <= life.death)
      plan.breakdown[static_cast<size_t>(plan.program.storage(life.storage).role)] += life.bytes;
  // Holes between storages, and the arena's last page, are nobody's: temporaries could use them.
  const int64_t holes = align_up(layout.arena_bytes, plan.target.page_bytes) - layout.run_bytes - layout.peak_live_bytes;
  plan.breakdown[static_cast<size_t>(Role::temporary)] += holes;
}

void find_stage_peaks(Plan& plan) {
  const Layout& layout = plan.layout;
  const std::vector<Stage>& stages = layout.timeline.stages;
  for (size_t time = 0; time < stages.size(); ++time) {
    std::optional<int64_t>& peak = plan.stage_peaks[static_cast<size_t>(stages[time])];
    const int64_t bytes = plan.runtime_bytes + layout.run_bytes + layout.live_bytes[time];
    peak = std::max(peak.value_or(0), bytes);
  }
  plan.peak_stage = stages[static_cast<size_t>(layout.peak_time)];
  plan.stage_peaks[static_cast<size_t>(plan.peak_stage)] = plan.peak_bytes;
}

}  // namespace

Plan make_plan(const ModelSpec& model, const Recipe& recipe, const Target& target, int64_t red_zone) {
  Plan plan{.model = model, .recipe = recipe, .precision = precision_of(recipe), .target = target};
  plan.program = compile(model, recipe);
  fit_to_target(plan.program, target);
  plan.layout = lay_out(plan.program, red_zone);
  const int64_t lengths = recipe.packing ? 1 : kMostBuckets;  // each prepares products of its own
  plan.runtime_bytes = target.runtime_bytes + target.threads * target.runtime_bytes_per_thread +
                       lengths * distinct_products(plan.program) * target.runtime_bytes_per_product;
  plan.budget_bytes = recipe.memory_bytes > 0 ? recipe.memory_bytes : target.memory_bytes;
  plan.peak_bytes = checked_add(plan.runtime_bytes, align_up(plan.layout.arena_bytes, target.page_bytes));
  plan.step_flops = flops_of(plan.program, plan.program.region("step"));
  add_up_peak(plan);
  find_stage_peaks(plan);
  return plan;
}

std::vector<LargeStorage> largest_at_peak(const Plan& plan, size_t count) {
  std::map<std::pair<std::string, Role>, int64_t> by_name;
  for (const Storage& storage : plan.program.storages)
    if (storage.lifetime == Lifetime::run) by_name[{storage.name, storage.role}] += storage.bytes;
  for (const Life& life : plan.layout.timeline.lives) {
    if (life.birth > plan.layout.peak_time || plan.layout.peak_time > life.death) continue;
    const Storage& storage = plan.program.storage(life.storage);
    by_name[{storage.name, storage.role}] += life.bytes;
  }
  std::vector<LargeStorage> list;
  for (const auto& [key, bytes] : by_name) list.push_back({key.first, key.second, bytes});
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (list.size() > count) list.resize(count);
  return list;
}

}  // namespace snug
