#pragma once
// The training loop: data, arena, load, steps, evaluation, checkpoints, result. It prints nothing; what happens goes to a
// Reporter.

#include <atomic>
#include <filesystem>
#include <optional>

#include "comm/rank_rings.h"
#include "data/dataset.h"
#include "plan/plan.h"
#include "train/metrics.h"

namespace snug {

struct StepReport {
  StepMetrics metrics;
  int64_t total_steps = 0;
  double epoch = 0;  // passes over the data, this step among them
  double seconds_passed = 0, seconds_left = 0;
  int64_t planned_peak_bytes = 0;
  int64_t measured_peak_bytes = 0;
  std::optional<double> waited_share = {};  // of the time so far, for pages; none if nothing moves
  bool logged = false;                      // in metrics.jsonl too
};

// Batches of an evaluation.
struct EvaluationProgress {
  int64_t step = 0, done = 0, all = 0;
  double seconds_left = 0;
};

// What a run tells while it goes on.
class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void data_ready(const DatasetSummary& summary, const std::filesystem::path& file) = 0;
  // A row of the data that cannot be used, told of before data_ready or an Error.
  virtual void bad_row(const std::string& line) = 0;
  virtual void resumed(const std::filesystem::path& checkpoint, int64_t step) = 0;
  // Asked to go on, but `directory` holds no finished checkpoint.
  virtual void nothing_to_resume(const std::filesystem::path& directory) = 0;
  // Weights and data are there: from here on `stop` is heeded.
  virtual void loaded() = 0;
  virtual void stepped(const StepReport& report) = 0;
  virtual void evaluating(const EvaluationProgress& progress) = 0;
  virtual void evaluated(const EvaluationMetrics& metrics) = 0;
  virtual void saved(const std::filesystem::path& directory) = 0;
  // Evaluations have been no better for early_stopping_patience: the run ends with this step.
  virtual void ended_early(int64_t step, int64_t best_step) = 0;
  // The result is this checkpoint, the best of so many evaluations; but if somebody has removed it the last weights.
  virtual void chose(const std::filesystem::path& checkpoint, int64_t evaluations, bool there) = 0;
};

// Executes the plan, which must fit. Stops after the step in which `stop` became nonzero, with a checkpoint saved; an
// evaluation ends after the batch in which it did, without a result.
// Throws Error: bad files, a directory that holds another run, a loss that is not a number. `trace`: a file for a trace of
// the first steps, which plan_tracing must have counted; empty: none. `ranks`: of a plan for several, all of which call
// this; they share the output directory, in which the first one alone writes but for the parts of checkpoints.
RunSummary train(const Plan& plan, Reporter& reporter, const std::atomic<int>& stop, const std::filesystem::path& trace = {},
                 RankRings* ranks = nullptr);

}  // namespace snug
