#include "explain/recipe_advice.h"

#include <algorithm>

namespace snug {

namespace {

constexpr int64_t kSpare = 20;  // one part of the device in so many stays free

int64_t budget_of(int64_t plan_bytes, int64_t capacity, int64_t missing) {
  const int64_t limit = capacity - capacity / kSpare;
  if (missing <= 0 || plan_bytes > limit) return limit;
  const double share = static_cast<double>(limit) / (static_cast<double>(capacity) + static_cast<double>(missing));
  return std::max<int64_t>(1, static_cast<int64_t>(share * static_cast<double>(plan_bytes)));
}

}  // namespace

RecipeAdvice advise_on(const ModelSpec& model, Recipe recipe, const Target& target, int64_t capacity_bytes,
                       int64_t missing_bytes, PyTorchEngine* pytorch) {
  recipe.memory_bytes = capacity_bytes;
  const Plan plan = make_plan(model, recipe, target);
  SnugEngine of_snug(plan.model, plan.target, capacity_bytes);
  Engine& engine = pytorch != nullptr ? static_cast<Engine&>(*pytorch) : of_snug;
  RecipeAdvice advice{.of_pytorch = pytorch != nullptr,
                      .plan_bytes = engine.exactly(recipe).bytes,
                      .levers = levers(plan, engine),
                      .set = {}};
  advice.budget_bytes = budget_of(advice.plan_bytes, capacity_bytes, missing_bytes);
  if (!advice.must_change()) return advice;
  WithinBudget limited(engine, advice.budget_bytes);
  std::optional<LeverSet> closest;
  advice.set = smallest_set_that_fits(plan, limited, closest);
  advice.enough = advice.set.has_value();
  if (!advice.enough) advice.set = closest;
  return advice;
}

}  // namespace snug
