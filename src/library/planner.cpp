// The planner behind include/snug/planner.h: strings in, plain structures out. The one place where snug's errors become text
// for a caller that is another program.

#include "snug/planner.h"

#include "base/error.h"
#include "report/plan_json.h"
#include "report/plan_text.h"
#include "model/catalogue.h"
#include "model/config.h"
#include "plan/accelerator_target.h"
#include "plan/plan.h"
#include "recipe/keys.h"

namespace snug::planner {

namespace {

ModelSpec model_of(const Request& request) {
  if (request.model.empty() == request.config_json.empty())
    throw Error("a model is named by Request::model or by Request::config_json", "request", "give one of the two");
  return request.model.empty() ? parse_config(request.config_json, "config_json") : resolve_model(request.model);
}

Target target_of_request(const Request& request, const Recipe& recipe) {
  if (request.accelerator.empty()) return this_cpu(recipe.threads);
  const Accelerator* accelerator = find_accelerator(request.accelerator);
  if (accelerator == nullptr)
    throw Error("there is no accelerator '" + request.accelerator + "'", "request",
                "nearest: " + nearest_accelerator(request.accelerator) + "; or give memory_bytes");
  return target_of(*accelerator);
}

Recipe recipe_of(const Request& request, std::vector<std::string>& ignored) {
  Recipe recipe;
  for (const auto& [key, value] : request.recipe)
    if (apply(recipe, key, value, key) == Applied::passed_over) ignored.push_back(key);
  recipe.model = request.model;
  if (request.memory_bytes < 0) throw Error("memory_bytes is negative", "request", "give the budget in bytes");
  if (request.memory_bytes > 0) recipe.memory_bytes = request.memory_bytes;
  if (request.threads > 0) recipe.threads = request.threads;
  validate(recipe);
  return recipe;
}

Result result_of(const Plan& plan) {
  Result result{.fits = plan.fits(), .peak_bytes = plan.peak_bytes, .budget_bytes = plan.budget_bytes};
  result.peak_stage = name_of(plan.peak_stage);
  for (int role = 0; role < kRoleCount; ++role)
    result.breakdown.push_back({name_of(static_cast<Role>(role)), plan.breakdown[static_cast<size_t>(role)]});
  result.breakdown.push_back({"runtime", plan.runtime_bytes});
  for (int stage = 0; stage < kStageCount; ++stage)
    if (const auto& peak = plan.stage_peaks[static_cast<size_t>(stage)])
      result.stages.push_back({name_of(static_cast<Stage>(stage)), *peak});
  if (!plan.fits()) result.smallest_change = change_text(plan);
  result.json = plan_json(plan);
  return result;
}

}  // namespace

Result plan(const Request& request) {
  try {
    std::vector<std::string> ignored;
    const Recipe recipe = recipe_of(request, ignored);
    Result result = result_of(make_plan(model_of(request), recipe, target_of_request(request, recipe)));
    result.ignored = std::move(ignored);
    return result;
  } catch (const std::exception& error) {
    Result result;
    result.error = error.what();
    if (result.error.empty()) result.error = "unknown error";
    return result;
  }
}

}  // namespace snug::planner
