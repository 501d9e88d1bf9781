#include "advise/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/parameters.h"
#include "program/compile.h"

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

StepFacts step_facts(const Plan& plan) {
  const Program& p = plan.program;
  StepFacts facts{.rows = checked_mul(checked_mul(p.batch, p.micro_batches), p.mesh.batches()),
                  .seq_len = p.seq_len,
                  .ranks = p.mesh.ranks,
                  .flops = plan.step_flops,
                  .seconds = {}};
  if (plan.target.cost.known()) facts.seconds = plan.step_time.seconds;
  return facts;
}

double products_with_weights(const ModelSpec& model, const Recipe& recipe) {
  double blocks = 0;
  for (const Parameter& p : parameters_of(model))
    if (p.kind == ParameterKind::linear && p.per_layer)
      blocks += static_cast<double>(p.elements()) * static_cast<double>(p.instances(model.layers));
  const auto head = static_cast<double>(checked_mul(model.vocab_size, model.hidden_size));  // tied or not
  const auto tokens =
      static_cast<double>(checked_mul(checked_mul(recipe.batch, recipe.accumulation), sequence_length(model, recipe)));
  const double passes = recipe.method == Method::full ? 3 : 2;
  return 2 * tokens * (passes * (blocks + head) + (recipe.gradient_checkpointing ? blocks : 0));
}

RunCost run_cost(const Plan& plan, const std::optional<Workload>& workload, std::optional<double> step_seconds) {
  StepFacts facts = step_facts(plan);
  if (facts.seconds && step_seconds) facts.seconds = step_seconds;
  return run_cost(plan.recipe, facts, workload, plan.target.dollars_per_hour);
}

RunCost run_cost(const Recipe& recipe, const StepFacts& step, const std::optional<Workload>& workload,
                 std::optional<double> dollars_per_hour) {
  const auto step_tokens = static_cast<double>(step.rows) * static_cast<double>(step.seq_len);
  RunCost cost;
  if (recipe.max_steps > 0) {
    cost.steps = recipe.max_steps;
  } else if (workload) {
    const double rows = std::ceil(recipe.num_train_epochs * static_cast<double>(workload->rows));
    cost.steps = static_cast<int64_t>(std::ceil(rows / static_cast<double>(step.rows)));
  }
  if (!cost.steps) return cost;
  const auto steps = static_cast<double>(*cost.steps);
  double full = 1, real = 1;  // of a step's tokens: computed, and not padding
  if (workload && workload->rows > 0) {
    const double row_tokens = static_cast<double>(workload->rows) * static_cast<double>(step.seq_len);
    full = workload->computed_tokens / row_tokens;
    real = static_cast<double>(workload->tokens) / row_tokens;
  }
  cost.tokens = static_cast<int64_t>(std::llround(steps * step_tokens * real));
  if (recipe.max_steps <= 0 && workload)
    cost.tokens = static_cast<int64_t>(std::llround(recipe.num_train_epochs * static_cast<double>(workload->tokens)));
  const auto ranks = static_cast<double>(step.ranks);
  cost.flops = steps * step.flops * full * ranks;
  if (step.seconds) cost.seconds = steps * *step.seconds * full;
  if (cost.seconds && dollars_per_hour) cost.dollars = *cost.seconds / 3600 * *dollars_per_hour * ranks;
  return cost;
}

}  // namespace snug
