#include "report/plan_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "plan/step_times.h"
#include "plan/timeline.h"
#include "recipe/keys.h"
#include "report/page.h"
#include "report/plan_text.h"
#include "report/units.h"

namespace snug {

extern const std::string_view kPageText, kPageStyle, kPageScript, kD3Script;  // of web/plan, and D3's own file

namespace {

using Json = nlohmann::ordered_json;

// What fills a hole of the page that is the same for every plan.
std::string_view part_named(std::string_view name) {
  if (name == "style") return kPageStyle;
  if (name == "script") return kPageScript;
  if (name == "d3") return kD3Script;
  throw std::logic_error("the page has no part '" + std::string(name) + "'");
}

Json breakdown_list(const Plan& plan) {
  Json list = Json::array();
  for (int role = 0; role < kRoleCount; ++role)
    list.push_back({name_of(static_cast<Role>(role)), plan.breakdown[static_cast<size_t>(role)]});
  list.push_back({"runtime", plan.runtime_bytes});
  return list;
}

Json stages_list(const Plan& plan) {
  Json list = Json::array();
  for (int stage = 0; stage < kStageCount; ++stage)
    if (const auto& peak = plan.stage_peaks[static_cast<size_t>(stage)])
      list.push_back({name_of(static_cast<Stage>(stage)), *peak});
  return list;
}

Json largest_json(const Plan& plan) {
  Json list = Json::array();
  for (const LargeStorage& large : largest_at_peak(plan, 12)) list.push_back({large.name, large.bytes, name_of(large.role)});
  return list;
}

Json precision_json(const Plan& plan) {
  Json list = Json::array();
  for (const auto& [name, dtype] : precisions(plan)) list.push_back({name, name_of(dtype)});
  return list;
}

// [[name, value]] of the keys that were given, or of the others.
Json keys_json(const Plan& plan, const std::vector<std::string>& keys_set, bool given) {
  Json list = Json::array();
  for (const Key& key : recipe_keys())
    if (key.get && given == (std::find(keys_set.begin(), keys_set.end(), key.name) != keys_set.end()))
      list.push_back({std::string(key.name), key.get(plan.recipe)});
  return list;
}

Json storages_json(const Program& program) {
  Json list = Json::array();
  for (const Storage& storage : program.storages)
    list.push_back({{"name", storage.name},
                    {"role", static_cast<int>(storage.role)},
                    {"bytes", align_up(storage.bytes, kAlignment)},
                    {"layered", storage.instances > 1},
                    {"away", storage.home != Home::device}});
  return list;
}

// Bytes that lie away from load to save, and what lies there when most does: [[name, bytes]].
Json away_json(const Plan& plan) {
  int64_t throughout = 0;
  for (const Storage& storage : plan.program.storages)
    if (storage.lifetime == Lifetime::run && storage.home != Home::device)
      throughout += align_up(storage.bytes, kAlignment) * storage.instances;
  return {{"throughout", throughout}, {"parts", away_parts(plan)}, {"where", away_home(plan)}};
}

// Columns of copies beside compute, as they lie on the axis of ops where times are known: which op, from and to where; and
// of ops that wait for one: how long, in seconds.
Json lanes_json(const Plan& plan, const MemoryTimeline& timeline) {
  const StepTimes times(timeline, seconds_by(plan.target.cost), plan.target.cost.copies_beside);
  std::vector<size_t> op, waiting;
  std::vector<double> from, to, waits;
  for (size_t i = 0; i < timeline.steps.size(); ++i) {
    if (run_by(timeline.steps[i].op->kind) == RunBy::executor) {
      op.push_back(i);
      from.push_back(times.is_beside(i) ? times.place_of(times[i].begin) : static_cast<double>(i));
      to.push_back(times.is_beside(i) ? times.place_of(times[i].end) : static_cast<double>(i + 1));
    } else if (times[i].begin > times[i].free) {
      waiting.push_back(i);
      waits.push_back(times[i].begin - times[i].free);
    }
  }
  return {{"op", op}, {"from", from}, {"to", to}, {"waiting", waiting}, {"seconds", waits}};
}

// Storages that live from load to save, all instances of one together.
Json resident_json(const Plan& plan) {
  Json list = Json::array();
  for (size_t i = 0; i < plan.program.storages.size(); ++i) {
    const Storage& storage = plan.program.storages[i];
    if (storage.lifetime != Lifetime::run || storage.home != Home::device) continue;
    list.push_back({{"name", storage.name},
                    {"role", static_cast<int>(storage.role)},
                    {"bytes", align_up(storage.bytes, kAlignment)},
                    {"offset", plan.layout.storages[i].offset}});
  }
  return list;
}

// Columns: a number for each op that is shown, or for each life.
void add_columns(const MemoryTimeline& timeline, Json& json) {
  std::vector<int64_t> point, layer, group, storage, instance, offset, birth, death;
  for (const TimelineStep& step : timeline.steps) {
    point.push_back(step.point);
    layer.push_back(step.layer);
    group.push_back(step.group);
  }
  for (const TimelineLife& life : timeline.lives) {
    storage.push_back(life.storage);
    instance.push_back(life.instance);
    offset.push_back(life.offset);
    birth.push_back(life.birth);
    death.push_back(life.death);
  }
  json["steps"] = {{"point", point}, {"layer", layer}, {"group", group}};
  json["lives"] = {{"storage", storage}, {"instance", instance}, {"offset", offset}, {"birth", birth}, {"death", death}};
}

// The label of each point of the folded timeline, with "{}" for the layer.
Json points_json(const Program& program) {
  Json list = Json::array();
  for_each_op(program.root, [&](const Op& op, const Region&) { list.push_back(label_of(program, op)); });
  return list;
}

// [name, stage, parent, first op, last op, kind].
Json groups_json(const MemoryTimeline& timeline) {
  constexpr const char* kKinds[] = {"", "layer", "micro_batch", "chunk"};
  Json list = Json::array();
  for (const TimelineGroup& group : timeline.groups)
    list.push_back({label_of(group), name_of(group.region->stage), group.parent, group.first_step, group.last_step,
                    kKinds[static_cast<int>(group.region->axis)]});
  return list;
}

std::string hidden_text(const Plan& plan, const MemoryTimeline& timeline) {
  if (timeline.hidden_steps == 0) return "";
  const int64_t micro_batches = plan.program.micro_batches;
  std::string text = fmt::format("{} ops of repetitions are not drawn", timeline.hidden_steps);
  if (micro_batches > 2) text += fmt::format(": of {} micro-batches the first and the last are shown", micro_batches);
  return text + ".";
}

std::string shape_text(const Plan& plan) {
  const Program& p = plan.program;
  return fmt::format("{} × {} × {} a step, {} a step, for {}", counted(p.batch, "sequence"), counted(p.seq_len, "token"),
                     counted(p.micro_batches, "micro-batch"), flops_text(plan.step_flops), plan.target.name);
}

Json page_json(const Plan& plan, const std::vector<std::string>& keys_set) {
  const Program& p = plan.program;
  const MemoryTimeline timeline = unfold(p, plan.layout);
  Json roles = Json::array();
  for (int role = 0; role < kRoleCount; ++role) roles.push_back(name_of(static_cast<Role>(role)));
  Json json{{"model", plan.model.name},
            {"verdict", plan_verdict(plan)},
            {"change", plan.fits() ? "" : change_text(plan)},
            {"shape", shape_text(plan)},
            {"fits", plan.fits()},
            {"peak_bytes", plan.peak_bytes},
            {"budget_bytes", plan.budget_bytes},
            {"runtime_bytes", plan.runtime_bytes},
            {"arena_bytes", plan.layout.device().bytes},
            {"run_bytes", plan.layout.device().run_bytes},
            {"disk_bytes", plan.away_bytes()},
            {"away", away_json(plan)},
            {"lanes", lanes_json(plan, timeline)},
            {"breakdown", breakdown_list(plan)},
            {"stages", stages_list(plan)},
            {"largest", largest_json(plan)},
            {"given", keys_json(plan, keys_set, true)},
            {"assumed", keys_json(plan, keys_set, false)},
            {"precision", precision_json(plan)},
            {"notes", p.notes},
            {"hidden", hidden_text(plan, timeline)},
            {"roles", roles},
            {"storages", storages_json(p)},
            {"resident", resident_json(plan)},
            {"points", points_json(p)},
            {"groups", groups_json(timeline)}};
  add_columns(timeline, json);
  return json;
}

}  // namespace

std::string plan_html(const Plan& plan, const std::vector<std::string>& keys_set) {
  const std::string data =
      without_markup(page_json(plan, keys_set).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  std::string out;
  write_page(
      kPageText, [&](std::string_view text) { out += text; },
      [&](std::string_view name) { out += name == "data" ? std::string_view(data) : part_named(name); });
  return out;
}

}  // namespace snug
