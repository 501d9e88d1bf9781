#pragma once
// Workload: how much there is to train on, and what a plan's run over it costs: steps, tokens, FLOPs, seconds, dollars. What
// is not known stays unknown.

#include <cstdint>
#include <optional>
#include <string>

#include "plan/plan.h"

namespace snug {

// One epoch of a data set, as a recipe's rows have it.
struct Workload {
  int64_t examples = 0;
  int64_t tokens = 0;          // in documents, without padding
  int64_t rows = 0;            // sequences that training sees
  double computed_tokens = 0;  // of all rows, padding included
};

// The same with what people want to know of it.
struct CountedData {
  Workload workload;
  std::string description;     // a line or two
  int64_t longest_tokens = 0;  // of an example, before cutting
};

// So many examples of so many tokens each, cut to the plan's length; packed into full rows if the recipe packs.
Workload workload_of(const Plan& plan, int64_t examples, int64_t example_tokens);

// Likewise, with its description.
CountedData counted_examples(const Plan& plan, int64_t examples, int64_t example_tokens);

constexpr int64_t kMostExamples = 1'000'000'000'000, kMostExampleTokens = 1 << 30;  // that counts make sense of

struct RunCost {
  std::optional<int64_t> steps, tokens;  // tokens without padding
  std::optional<double> flops, seconds, dollars;
};

// What an optimizer step is, of whichever engine.
struct StepFacts {
  int64_t rows = 0;  // sequences, of all micro-batches and ranks
  int64_t seq_len = 0;
  int64_t ranks = 1;
  double flops = 0;  // of one rank
  std::optional<double> seconds;
};
StepFacts step_facts(const Plan& plan);
// FLOPs of one rank's step, at 2 a multiply-add: all that can be said of a model of which there is no Program. Each token
// meets each linear forward, for its input's gradient, for the weight's where that is trained, and once more where blocks
// are computed again. Attention's scores and a delta rule's chunks are left out.
double products_with_weights(const ModelSpec& model, const Recipe& recipe);
RunCost run_cost(const Recipe& recipe, const StepFacts& step, const std::optional<Workload>& workload,
                 std::optional<double> dollars_per_hour);

// Over num_train_epochs of the workload, or max_steps. Seconds leave loading and saving out.
// `step_seconds`: of another engine, in place of the plan's.
RunCost run_cost(const Plan& plan, const std::optional<Workload>& workload, std::optional<double> step_seconds = {});

}  // namespace snug
