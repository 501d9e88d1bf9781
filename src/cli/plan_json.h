#pragma once
// A plan as the JSON object that scripts read (`snug plan --json`).

#include <string>

#include "plan/plan.h"

namespace snug::cli {

std::string plan_json(const Plan& plan);

}  // namespace snug::cli
