#pragma once
// The map of a run that snug itself makes: what lies in memory, what on disk, and the keys that say so.

#include <string>
#include <vector>

#include "advise/max_memory.h"
#include "plan/plan.h"

namespace snug {

// `plan`: of place_run().
std::string placed_run_text(const Plan& plan, const std::vector<DeviceRoom>& rooms);
std::string placed_run_json(const Plan& plan, const std::vector<DeviceRoom>& rooms);

}  // namespace snug
