#pragma once
// metrics.jsonl: one object a step, last a summary. Lines are written whole and at once, without allocating.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "formats/file.h"

namespace snug {

struct StepMetrics {
  int64_t step = 0;
  double loss = 0, gradient_norm = 0, learning_rate = 0, tokens_per_second = 0;
  int64_t memory_bytes = 0;
  std::optional<double> loss_scale = {};  // fp16: what this step was computed with
  bool skipped = false;                   // its gradients overflowed: nothing was updated
};

struct EvaluationMetrics {
  int64_t step = 0;
  double loss = 0;
  double token_accuracy = 0;  // predicted tokens that are right, given the true ones before them
  double exact = 0;           // documents whose every predicted token is right: what greedy decoding would reproduce
  int64_t documents = 0;
};

struct RunSummary {
  int64_t planned_peak_bytes = 0, measured_peak_bytes = 0, steps = 0;
  double train_loss = 0;  // mean over the steps of this process
  double tokens_per_second = 0;
  int64_t fetched_bytes = 0, sent_bytes = 0;  // pages from and to other homes
  double waited_seconds = 0;                  // for them
  std::vector<int64_t> rank_peaks = {};       // measured by each rank; empty: it ran alone
  std::vector<int64_t> rank_sent = {};        // bytes, by each one's collectives
  double waited_for_ranks = 0;                // seconds of this one
};

// The evaluations that a metrics file tells of, in its order. Throws Error if it cannot be read.
void each_evaluation(const std::filesystem::path& path, const std::function<void(const EvaluationMetrics&)>& take);

class MetricsFile {
 public:
  // Opens `path` for appending; lines of steps after `last_step` are dropped first (a run that was killed had gone further).
  MetricsFile(const std::filesystem::path& path, int64_t last_step);

  void write(const StepMetrics& metrics);
  void write(const EvaluationMetrics& metrics);
  void write(const RunSummary& summary);

 private:
  void line(const char* text, size_t length);

  std::filesystem::path path_;
  UniqueFd fd_;
};

}  // namespace snug
