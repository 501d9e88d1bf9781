#include "advise/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace snug {

Workload workload_of(const Plan& plan, int64_t examples, int64_t example_tokens) {
  const int64_t seq_len = plan.program.seq_len, kept = std::min(example_tokens, seq_len);
  Workload workload{.examples = examples, .tokens = checked_mul(examples, kept), .rows = examples};
  if (plan.recipe.packing) {
    const int64_t in_row = std::max<int64_t>(1, seq_len / kept);  // whole documents
    workload.rows = (examples + in_row - 1) / in_row;
    workload.computed_tokens = static_cast<double>(workload.rows) * static_cast<double>(seq_len);
  } else {
    workload.computed_tokens = static_cast<double>(workload.tokens);  // one length: rows are padded to it alone
  }
  return workload;
}

CountedData counted_examples(const Plan& plan, int64_t examples, int64_t example_tokens) {
  std::string text = fmt::format("{} examples of {} token{}", examples, example_tokens, example_tokens == 1 ? "" : "s");
  if (example_tokens > plan.program.seq_len) text += fmt::format(", cut to {}", plan.program.seq_len);
  return {workload_of(plan, examples, example_tokens), text, example_tokens};
}

RunCost run_cost(const Plan& plan, const std::optional<Workload>& workload, std::optional<double> step_seconds) {
  const Program& p = plan.program;
  const Recipe& recipe = plan.recipe;
  const int64_t step_rows = checked_mul(checked_mul(p.batch, p.micro_batches), p.mesh.batches());
  const auto step_tokens = static_cast<double>(step_rows) * static_cast<double>(p.seq_len);
  RunCost cost;
  if (recipe.max_steps > 0) {
    cost.steps = recipe.max_steps;
  } else if (workload) {
    const double rows = std::ceil(recipe.num_train_epochs * static_cast<double>(workload->rows));
    cost.steps = static_cast<int64_t>(std::ceil(rows / static_cast<double>(step_rows)));
  }
  if (!cost.steps) return cost;
  const auto steps = static_cast<double>(*cost.steps);
  double full = 1, real = 1;  // of a step's tokens: computed, and not padding
  if (workload && workload->rows > 0) {
    const double row_tokens = static_cast<double>(workload->rows) * static_cast<double>(p.seq_len);
    full = workload->computed_tokens / row_tokens;
    real = static_cast<double>(workload->tokens) / row_tokens;
  }
  cost.tokens = static_cast<int64_t>(std::llround(steps * step_tokens * real));
  if (recipe.max_steps <= 0 && workload)
    cost.tokens = static_cast<int64_t>(std::llround(recipe.num_train_epochs * static_cast<double>(workload->tokens)));
  const auto ranks = static_cast<double>(p.mesh.ranks);
  cost.flops = steps * plan.step_flops * full * ranks;
  if (plan.target.cost.known()) cost.seconds = steps * step_seconds.value_or(plan.step_time.seconds) * full;
  if (cost.seconds && plan.target.dollars_per_hour)
    cost.dollars = *cost.seconds / 3600 * *plan.target.dollars_per_hour * ranks;
  return cost;
}

}  // namespace snug
