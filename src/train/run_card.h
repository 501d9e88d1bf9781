#pragma once
// The model card that a run writes beside its result.

#include <span>
#include <string>

#include "data/dataset.h"
#include "plan/plan.h"
#include "train/metrics.h"

namespace snug {

// Of the weights of this step, trained on such data to a mean loss, with what evaluations found. Its recipe is what the
// plan's says beside its defaults, but for where things lie.
std::string run_card(const Plan& plan, const DatasetSummary& data, std::span<const EvaluationMetrics> evaluations,
                     int64_t step, double mean_loss);

}  // namespace snug
