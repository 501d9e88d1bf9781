#pragma once
// Metrics as TensorBoard shows them, under the tags of Hugging Face's Trainer: train/loss, eval/loss …

#include <filesystem>

#include "formats/event_file.h"
#include "train/metrics.h"

namespace snug {

class EventLog {
 public:
  // A new event file in `directory`; steps after `last_step` in earlier files of it were lost.
  EventLog(const std::filesystem::path& directory, int64_t last_step)
      : file_(directory, last_step > 0 ? last_step + 1 : 0) {}

  void write(const StepMetrics& metrics, double epoch);
  void write(const EvaluationMetrics& metrics);
  void write(const RunSummary& summary);

 private:
  EventFile file_;
};

}  // namespace snug
