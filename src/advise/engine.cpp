#include "advise/engine.h"

namespace snug {

Need SnugEngine::about(const Recipe& recipe) {
  const Estimate estimated = estimate(model_, recipe, target_);
  return {estimated.overfull_home ? kNever : estimated.peak_bytes, estimated.step_time.seconds};
}

Need SnugEngine::exactly(const Recipe& recipe) {
  const Plan plan = make_plan(model_, recipe, target_);
  return {plan.overfull_home() ? kNever : plan.peak_bytes, step_time(target_.cost, plan.program).seconds};
}

}  // namespace snug
