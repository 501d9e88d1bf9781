#pragma once
// A plan as the JSON object that scripts read (`snug plan --json`).

#include <string>

#include "cli/count_data.h"
#include "plan/plan.h"

namespace snug::cli {

std::string plan_json(const Plan& plan, const std::optional<CountedData>& data = std::nullopt);

}  // namespace snug::cli
