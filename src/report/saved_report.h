#pragma once
// What becomes of what blocks save, where the plan chose it (gradient_checkpointing: auto).

#include <nlohmann/json.hpp>
#include <string>

#include "plan/plan.h"
#include "report/text_style.h"

namespace snug {

// Lines of what is made again and of what waits on disk, with what that adds to a step:
//   made again layers 0 – 20: gate, up, gated; 21: gated; 4.1 % of the step
// Empty where everything is kept.
std::string saved_text(const Plan& plan, const TextStyle& style);

// [{"first_layer", "layers", "tensors": [names]}]
nlohmann::ordered_json saved_json(const Plan& plan, const SavedByLayer& saved);

}  // namespace snug
