#pragma once
// What layers make again where the plan chose it (gradient_checkpointing: auto).

#include <nlohmann/json.hpp>
#include <string>

#include "plan/plan.h"

namespace snug {

// "layers 0 – 20: gate, up, gated; 21: gated; 4.1 % of the step"; empty where nothing is.
std::string released_text(const Plan& plan);

// [{"first_layer", "layers", "tensors": [names]}]
nlohmann::ordered_json released_json(const Plan& plan);

}  // namespace snug
