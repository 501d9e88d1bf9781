#pragma once
// Which evaluation was the best so far, and whether none has been better for long: transformers' load_best_model_at_end and
// EarlyStoppingCallback.

#include <array>
#include <cstdint>
#include <limits>

#include "recipe/recipe.h"
#include "train/metrics.h"

namespace snug {

class BestEvaluation {
 public:
  explicit BestEvaluation(const Recipe& recipe)
      : recipe_(recipe), value_(std::numeric_limits<double>::infinity() * (less_is_better() ? 1 : -1)) {}

  // In the order of steps; one before the first step counts for nothing.
  void note(const EvaluationMetrics& metrics);

  int64_t step() const { return step_; }  // -1: none yet
  int64_t evaluations() const { return evaluations_; }
  // What it knows, for another rank's to be set to. Exact: counts are small.
  using Numbers = std::array<double, 4>;
  Numbers numbers() const;
  void set(const Numbers& numbers);

  bool is_hopeless() const { return recipe_.early_stopping_patience > 0 && no_better_ >= recipe_.early_stopping_patience; }

 private:
  bool less_is_better() const { return recipe_.metric_for_best_model == BestMetric::loss; }
  double value_of(const EvaluationMetrics& metrics) const;

  const Recipe& recipe_;
  int64_t step_ = -1, no_better_ = 0, evaluations_ = 0;
  double value_;
};

}  // namespace snug
