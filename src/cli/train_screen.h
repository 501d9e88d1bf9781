#pragma once
// What `snug train` shows while it runs: one line that is written over on a terminal, a line each logging_steps elsewhere.

#include <filesystem>
#include <string>

#include "train/trainer.h"

namespace snug::cli {

// A step in at most `width` columns: first a bar, the step, its epoch and loss, speed, time passed and left, memory; then,
// where there is room, the share of the plan, the wait for pages, gradient norm and learning rate.
std::string progress_line(const StepReport& report, int width);
// The same in words, whole, for a log.
std::string log_line(const StepReport& report);
// What an evaluation found.
std::string evaluation_line(const EvaluationMetrics& metrics);

class TrainScreen final : public Reporter {
 public:
  // `as_rank`: of one of several processes.
  explicit TrainScreen(bool as_rank = false);
  void data_ready(const DatasetSummary& summary, const std::filesystem::path& file) override;
  void bad_row(const std::string& line) override;
  void resumed(const std::filesystem::path& checkpoint, int64_t step) override;
  void nothing_to_resume(const std::filesystem::path& directory) override;
  void loaded() override;
  void stepped(const StepReport& report) override;
  void evaluating(const EvaluationProgress& progress) override;
  void evaluated(const EvaluationMetrics& metrics) override;
  void saved(const std::filesystem::path& directory) override;
  void ended_early(int64_t step, int64_t best_step) override;
  void chose(const std::filesystem::path& checkpoint, int64_t evaluations, bool there) override;
  void finish_line();

 private:
  void write_over(const std::string& line);

  bool live_;  // on a terminal
  bool as_rank_;
  bool open_line_ = false;
};

}  // namespace snug::cli
