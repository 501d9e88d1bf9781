#include "train/best_evaluation.h"

namespace snug {

double BestEvaluation::value_of(const EvaluationMetrics& metrics) const {
  switch (recipe_.metric_for_best_model) {
    case BestMetric::loss: return metrics.loss;
    case BestMetric::token_accuracy: return metrics.token_accuracy;
    case BestMetric::exact: return metrics.exact;
  }
  return metrics.loss;
}

BestEvaluation::Numbers BestEvaluation::numbers() const {
  return {static_cast<double>(step_), static_cast<double>(no_better_), static_cast<double>(evaluations_), value_};
}

void BestEvaluation::set(const Numbers& numbers) {
  step_ = static_cast<int64_t>(numbers[0]);
  no_better_ = static_cast<int64_t>(numbers[1]);
  evaluations_ = static_cast<int64_t>(numbers[2]);
  value_ = numbers[3];
}

void BestEvaluation::note(const EvaluationMetrics& metrics) {
  if (metrics.step == 0) return;
  const double value = value_of(metrics);
  const double gain = less_is_better() ? value_ - value : value - value_;
  no_better_ = evaluations_++ == 0 || gain > recipe_.early_stopping_threshold ? 0 : no_better_ + 1;
  if (!(gain > 0)) return;  // nor is what is not a number
  step_ = metrics.step;
  value_ = value;
}

}  // namespace snug
