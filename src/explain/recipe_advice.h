#pragma once
// What to change in a known recipe after memory ran out on PyTorch: each change with the bytes and the time that two plans
// tell, and the smallest set that frees what was missing, planned as a whole. Plans are the eager model's where it covers
// the recipe, else snug's own. What must go is measured by the failure: what was missing and a twentieth of the device to
// spare.

#include <cstdint>
#include <optional>
#include <vector>

#include "advise/levers.h"
#include "advise/pytorch_engine.h"
#include "plan/plan.h"

namespace snug {

struct RecipeAdvice {
  bool of_pytorch = false;   // bytes are those of the device by the eager model, else of snug's plan
  int64_t plan_bytes = 0;    // peak of the recipe as it is
  int64_t budget_bytes = 0;  // what its plan may need to be safe; at least plan_bytes: nothing must change
  std::vector<Lever> levers;
  std::optional<LeverSet> set;  // none: nothing must change, or nothing is enough
  bool enough = false;          // the set's plan is within the budget

  bool must_change() const { return plan_bytes > budget_bytes; }
};

// `capacity_bytes`: what the device has for this process. `missing_bytes`: what must have come free for the allocation that
// failed; 0 if none is known. `pytorch`: null where the eager model does not cover the recipe.
RecipeAdvice advise_on(const ModelSpec& model, Recipe recipe, const Target& target, int64_t capacity_bytes,
                       int64_t missing_bytes, PyTorchEngine* pytorch = nullptr);

}  // namespace snug
