// The planner behind include/snug/planner.h: strings in, plain structures out. The one place where snug's errors become text
// for a caller that is another program.

#include "snug/planner.h"

#include <functional>

#include "advise/recommend.h"
#include "base/error.h"
#include "model/catalogue.h"
#include "model/config.h"
#include "plan/accelerator_target.h"
#include "plan/plan.h"
#include "recipe/keys.h"
#include "report/fit_report.h"
#include "report/plan_json.h"
#include "report/plan_text.h"

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

// A request's keys, read.
struct Asked {
  Recipe recipe;
  std::vector<std::string> keys_set, ignored;
};

Asked read_keys(const Request& request) {
  Asked asked;
  for (const auto& [name, value] : request.recipe) {
    if (apply(asked.recipe, name, value, name) == Applied::passed_over) asked.ignored.push_back(name);
    if (const Key* key = find_key(name)) asked.keys_set.emplace_back(key->name);
  }
  asked.recipe.model = request.model;
  if (request.memory_bytes < 0) throw Error("memory_bytes is negative", "request", "give the budget in bytes");
  if (request.memory_bytes > 0) asked.recipe.memory_bytes = request.memory_bytes;
  if (request.threads > 0) asked.recipe.threads = request.threads;
  validate(asked.recipe);
  return asked;
}

std::optional<CountedData> data_of(const Request& request, const Plan& plan) {
  if (request.examples == 0 && request.example_tokens == 0) return std::nullopt;
  if (request.examples < 1 || request.example_tokens < 1)
    throw Error("examples and example_tokens go together", "request", "give both, or neither");
  if (request.examples > kMostExamples || request.example_tokens > kMostExampleTokens)
    throw Error("so many examples or tokens are not to be trained on", "request", "give what the data has");
  return counted_examples(plan, request.examples, request.example_tokens);
}

Result result_of(const Plan& plan, const std::optional<CountedData>& data) {
  Result result{.fits = plan.fits(), .peak_bytes = plan.peak_bytes, .budget_bytes = plan.budget_bytes};
  result.peak_stage = name_of(plan.peak_stage);
  for (int role = 0; role < kRoleCount; ++role)
    result.breakdown.push_back({name_of(static_cast<Role>(role)), plan.breakdown[static_cast<size_t>(role)]});
  result.breakdown.push_back({"runtime", plan.runtime_bytes});
  for (int stage = 0; stage < kStageCount; ++stage)
    if (const auto& peak = plan.stage_peaks[static_cast<size_t>(stage)])
      result.stages.push_back({name_of(static_cast<Stage>(stage)), *peak});
  if (!plan.fits()) result.smallest_change = change_text(plan);
  result.json = plan_json(plan, {.data = data});
  return result;
}

Settings settings_of(const std::vector<Setting>& list) {
  Settings settings;
  for (const Setting& setting : list) settings.emplace_back(setting.key, setting.value);
  return settings;
}

// As keys of a request, which names model and machine otherwise.
Settings whole_recipe(Recipe recipe) {
  recipe.model.clear();
  recipe.memory_bytes = recipe.threads = 0;
  return settings_of(differences(Recipe{}, recipe));
}

Choice choice_of(const FitAnswer& answer, const FitChoice& choice) {
  const RunCost cost = run_cost(answer, choice);
  return {.settings = settings_of(choice.settings),
          .recipe = whole_recipe(choice.recipe),
          .peak_bytes = choice.peak_bytes,
          .effect = name_of(choice.effect),
          .given_up = choice.given_up,
          .step_seconds = answer.target.cost.known() ? std::optional(choice.step_seconds) : std::nullopt,
          .cost = {cost.steps, cost.tokens, cost.flops, cost.seconds, cost.dollars}};
}

Fit fit_of(const FitAnswer& answer) {
  Fit fit{.fits = answer.fits(), .budget_bytes = answer.budget_bytes, .method = answer.methods[answer.chosen].name};
  for (const MethodReport& searched : answer.methods) {
    Method method{.name = searched.name};
    for (const FitChoice& choice : searched.report.front) method.front.push_back(choice_of(answer, choice));
    if (searched.report.least) method.least_bytes = searched.report.least->peak_bytes;
    fit.methods.push_back(std::move(method));
  }
  if (fit.fits) fit.best = fit.methods[answer.chosen].front.front();
  fit.assumed = answer.assumed;
  if (answer.way_out) {
    fit.way_out = settings_of(answer.way_out->settings);
    fit.way_out_bytes = answer.way_out->peak_bytes;
  }
  fit.json = fit_json(answer);
  return fit;
}

// What `ask` returns, or what it throws as one line.
template <class Answer>
Answer answer_or_error(const std::function<Answer()>& ask) {
  try {
    return ask();
  } catch (const std::exception& error) {
    Answer answer;
    answer.error = error.what();
    if (answer.error.empty()) answer.error = "unknown error";
    return answer;
  }
}

}  // namespace

Result plan(const Request& request) {
  return answer_or_error<Result>([&] {
    Asked asked = read_keys(request);
    const Plan plan = make_plan(model_of(request), asked.recipe, target_of_request(request, asked.recipe));
    Result result = result_of(plan, data_of(request, plan));
    result.ignored = std::move(asked.ignored);
    return result;
  });
}

Fit fit(const Request& request) {
  return answer_or_error<Fit>([&] {
    Asked asked = read_keys(request);
    Fit fit = fit_of(recommend({.model = model_of(request),
                                .target = target_of_request(request, asked.recipe),
                                .recipe = asked.recipe,
                                .keys_set = asked.keys_set,
                                .counts = [&](const Plan& plan) { return data_of(request, plan); }}));
    fit.ignored = std::move(asked.ignored);
    return fit;
  });
}

}  // namespace snug::planner
