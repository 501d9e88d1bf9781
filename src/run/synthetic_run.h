#pragma once
// Steps without files: random weights, random tokens in whole rows. For measuring how long a Program's ops take here.

#include <random>

#include "plan/plan.h"
#include "run/executor.h"

namespace snug {

// Zeroes what lives throughout the run, then draws the weights as a fresh model's; those that are quantized stay zero.
void fill_at_random(Executor& executor, const ModelSpec& model);

// Feeds micro-batches of random tokens: one document a row, every token but the last predicts its successor.
class RandomBatches final : public Host {
 public:
  RandomBatches(Executor& executor, const ModelSpec& model) : executor_(executor), vocabulary_(model.vocab_size) {}
  void run(const Op& op, int64_t repetition) override;

 private:
  Executor& executor_;
  int64_t vocabulary_;
  std::minstd_rand random_{1};
};

// Sets the scalars of step number `step` and runs it.
void run_random_step(Executor& executor, RandomBatches& batches, int64_t step);

}  // namespace snug
