#pragma once
// Probe: how fast this machine runs each class of op, measured by running steps of small random models through the executor
// itself, so that what is timed is what trains. A few seconds.

#include <filesystem>
#include <functional>
#include <vector>

#include "plan/cost.h"
#include "plan/target.h"

namespace snug {

// One execution of an op.
struct CostSample {
  CostClass cost_class = CostClass::rows;
  double flops = 0, bytes = 0;
  double seconds = 0;
};

// For each class the seconds a FLOP, a byte and an op that explain its samples best (non-negative least squares). Classes
// without samples keep the rates of `otherwise`.
CostModel fit_rates(const std::vector<CostSample>& samples, const CostModel& otherwise);

// Measures `target`, a CPU. `pages`: a directory for the far home's file. `progress`: told the share that is done.
CostModel probe(const Target& target, const std::filesystem::path& pages, const std::function<void(double)>& progress = {});

}  // namespace snug
