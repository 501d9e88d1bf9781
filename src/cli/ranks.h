#pragma once
// A run by several processes, from the side of the command: starting them, and what each of them says.

#include <memory>
#include <optional>
#include <span>

#include "comm/world.h"
#include "plan/plan.h"
#include "train/trainer.h"

namespace snug::cli {

// Starts so many processes of `snug train words…` on this machine and waits for all of them. Returns the exit code of the
// first that failed; tells of one that a signal ended where no rank does.
int launch_ranks(int64_t ranks, std::span<char* const> words);

int64_t least_of_ranks(const RankRings& ranks, int64_t value);
// Throws RankLost, on all of them, where they do not run the same.
void require_same(const RankRings& ranks, const Plan& plan);

// Says nothing: the first rank speaks for all.
class QuietReporter final : public Reporter {
 public:
  void data_ready(const DatasetSummary&, const std::filesystem::path&) override {}
  void bad_row(const std::string&) override {}
  void resumed(const std::filesystem::path&, int64_t) override {}
  void nothing_to_resume(const std::filesystem::path&) override {}
  void loaded() override;
  void stepped(const StepReport&) override {}
  void evaluating(const EvaluationProgress&) override {}
  void evaluated(const EvaluationMetrics&) override {}
  void saved(const std::filesystem::path&) override {}
  void ended_early(int64_t, int64_t) override {}
  void chose(const std::filesystem::path&, int64_t, bool) override {}
};

}  // namespace snug::cli
