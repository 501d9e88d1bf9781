#include "report/plan_json.h"

#include <nlohmann/json.hpp>

#include "advise/levers.h"
#include "plan/away.h"
#include "plan/ranks.h"
#include "recipe/keys.h"
#include "report/json_value.h"
#include "report/plan_text.h"
#include "report/saved_report.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

Json recipe_json(const Plan& plan) {
  Json json = recipe_object(plan.recipe);
  Json precision;
  for (const auto& [name, dtype] : precisions(plan)) precision[name] = name_of(dtype);
  json["precision"] = precision;
  return json;
}

Json breakdown_json(const Plan& plan) {
  Json json;
  for (int role = 0; role < kRoleCount; ++role)
    json[name_of(static_cast<Role>(role))] = plan.breakdown[static_cast<size_t>(role)];
  json["runtime"] = plan.runtime_bytes;
  return json;
}

Json homes_json(const Plan& plan) {
  const int64_t disk = plan.layout.of(Home::disk).bytes;
  const Away away = away_of(plan.program, plan.layout);
  return {{"device", plan.peak_bytes},
          {"host", plan.away_bytes() - disk},
          {"disk", disk},
          {"fetched_a_step", away.fetched},
          {"sent_a_step", away.sent}};
}

Json stages_json(const Plan& plan) {
  Json json;
  for (int stage = 0; stage < kStageCount; ++stage) {
    const auto& peak = plan.stage_peaks[static_cast<size_t>(stage)];
    json[name_of(static_cast<Stage>(stage))] = peak ? Json(*peak) : Json();
  }
  return json;
}

// `bytes`: what a change's own peak is called.
Json levers_json(const std::vector<Lever>& levers, const char* bytes) {
  Json list = Json::array();
  for (const Lever& lever : levers) {
    Json settings = Json::object();
    for (const Setting& setting : lever.change.settings) settings[setting.key] = setting.value;
    list.push_back({{"settings", settings},
                    {"saved_bytes", lever.saved_bytes},
                    {bytes, lever.peak_bytes},
                    {"slowdown", lever.slowdown},
                    {"effect", name_of(lever.change.effect)},
                    {"note", lever.change.note}});
  }
  return list;
}

const char* name_of_fate(KeyFate fate) {
  constexpr const char* kNames[] = {"understood", "without effect", "touches memory", "unknown"};
  return kNames[static_cast<size_t>(fate)];
}

Json cost_json(const Plan& plan, const std::optional<CountedData>& data) {
  const RunCost cost = run_cost(plan, data ? std::optional(data->workload) : std::nullopt);
  Json json{{"tokens", or_null(cost.tokens)},   {"flops", or_null(cost.flops)},
            {"seconds", or_null(cost.seconds)}, {"dollars", or_null(cost.dollars)},
            {"steps", or_null(cost.steps)},     {"step_flops", plan.step_flops},
            {"step_seconds", nullptr},          {"source", nullptr}};
  if (!plan.target.cost.known()) return json;
  json["step_seconds"] = plan.step_time.seconds;
  json["source"] = plan.target.cost.source;
  return json;
}

// By stage where there are several; within one each holds as much as every other.
Json ranks_json(const Plan& plan) {
  if (!plan.stages.empty()) {
    Json stages = Json::array();
    for (const StagePlan& stage : plan.stages)
      stages.push_back({{"count", plan.program.mesh.of_stage()},
                        {"stage", stages.size()},
                        {"peak_bytes", stage.peak_bytes},
                        {"arena_bytes", stage.arena_bytes},
                        {"sent_bytes", stage.sent_bytes}});
    return stages;
  }
  Json rank{{"count", plan.program.mesh.ranks},
            {"peak_bytes", plan.peak_bytes},
            {"arena_bytes", plan.peak_bytes - plan.runtime_bytes}};
  if (plan.program.mesh.ranks > 1) rank["sent_bytes"] = sent_to_ranks(plan.program, 0);
  return Json::array({std::move(rank)});
}

}  // namespace

nlohmann::ordered_json model_object(const ModelSpec& m) {
  return {{"name", m.name},
          {"family", m.family},
          {"hidden_size", m.hidden_size},
          {"intermediate_size", m.intermediate_size},
          {"layers", m.layers},
          {"heads", m.heads},
          {"kv_heads", m.kv_heads},
          {"head_size", m.head_size},
          {"vocab_size", m.vocab_size},
          {"tied_embeddings", m.tied_embeddings}};
}

nlohmann::ordered_json recipe_object(const Recipe& recipe) {
  Json json;
  for (const Key& key : recipe_keys())
    if (key.get) json[std::string(key.name)] = key.get(recipe);
  return json;
}

nlohmann::ordered_json file_object(const ForeignRecipe& recipe) {
  Json keys = Json::array(), assumed = Json::object();
  for (const ForeignKey& key : recipe.keys)
    keys.push_back({{"name", key.name},
                    {"value", key.value},
                    {"line", key.line},
                    {"fate", name_of_fate(key.fate)},
                    {"ours", key.ours.empty() ? Json() : Json(key.ours)},
                    {"note", key.note}});
  for (const RecipeChange& of : recipe.assumed) assumed[of.key] = of.value;
  return {{"trainer", name_of(recipe.dialect)},
          {"stage", recipe.stage},
          {"gpus", recipe.gpus == 0 ? Json() : Json(recipe.gpus)},
          {"not_planned", recipe.named(KeyFate::touches_memory)},
          {"not_known", recipe.named(KeyFate::unknown)},
          {"notes", recipe.notes},
          {"assumed", assumed},
          {"keys", keys}};
}

std::string plan_json(const Plan& plan, const PlanDetails& details) {
  Json json{
      {"schema", 1},
      {"model", model_object(plan.model)},
      {"recipe", recipe_json(plan)},
      {"device", {{"name", plan.target.name}, {"memory_bytes", plan.target.memory_bytes}, {"threads", plan.target.threads}}},
      {"budget_bytes", plan.budget_bytes},
      {"total_parameters", plan.program.total_parameters()},
      {"trainable_parameters", plan.program.trainable_parameters()},
      {"fits", details.pytorch && details.pytorch->decides() ? details.pytorch->plan->fits : plan.fits()},
      {"verdicts", verdict_lines(plan, details.pytorch)},
      {"peak_bytes", plan.peak_bytes},
      {"peak_stage", name_of(plan.peak_stage)},
      {"breakdown", breakdown_json(plan)},
      {"stages", stages_json(plan)},
      {"homes", homes_json(plan)},
      {"ranks", ranks_json(plan)},
      {"cost", cost_json(plan, details.data)},
      {"made_again", saved_json(plan, plan.saved.released)},
      {"waits_on_disk", saved_json(plan, plan.saved.away)},
      {"inputs_at_once", plan.saved.inputs > 0 ? Json(plan.saved.inputs) : Json()},
      {"notes", plan.program.notes}};
  if (details.pytorch) json["pytorch"] = pytorch_json(*details.pytorch);
  if (details.pytorch_levers) json["pytorch"]["levers"] = levers_json(*details.pytorch_levers, "device_bytes");
  if (details.levers) json["levers"] = levers_json(levers(plan), "peak_bytes");
  if (details.foreign) json["file"] = file_object(*details.foreign);
  return json.dump(2);
}

}  // namespace snug
