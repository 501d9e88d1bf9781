#include "train/event_log.h"

namespace snug {

void EventLog::write(const StepMetrics& m, double epoch) {
  const EventScalar scalars[] = {{"train/loss", m.loss},
                                 {"train/grad_norm", m.gradient_norm},
                                 {"train/learning_rate", m.learning_rate},
                                 {"train/epoch", epoch},
                                 {"train/tokens_per_second", m.tokens_per_second},
                                 {"train/memory_bytes", static_cast<double>(m.memory_bytes)},
                                 {"train/loss_scale", m.loss_scale.value_or(1.0)}};
  const std::span all(scalars);
  file_.write(m.step, m.loss_scale ? all : all.first(all.size() - 1));
}

void EventLog::write(const EvaluationMetrics& m) {
  const EventScalar scalars[] = {{"eval/loss", m.loss}, {"eval/token_accuracy", m.token_accuracy}, {"eval/exact", m.exact}};
  file_.write(m.step, scalars);
}

void EventLog::write(const RunSummary& s) {
  const EventScalar scalars[] = {{"train/train_loss", s.train_loss},
                                 {"train/planned_peak_bytes", static_cast<double>(s.planned_peak_bytes)},
                                 {"train/measured_peak_bytes", static_cast<double>(s.measured_peak_bytes)}};
  file_.write(s.steps, scalars);
}

}  // namespace snug
