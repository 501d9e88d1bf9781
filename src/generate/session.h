#pragma once
// Session: one sequence in a planned arena. Tokens are fed, which stores their keys and values; then the logits of the last
// one are there. It owns the executor and the weights, and knows neither text nor sampling.

#include <optional>
#include <span>
#include <vector>

#include "generate/adapter_stack.h"
#include "plan/plan.h"
#include "run/executor.h"

namespace snug {

class Session final : public Host {
 public:
  // Commits the arena of a generating plan and loads the weights of the checkpoint `model`. Throws Error.
  Session(const Plan& plan, const std::filesystem::path& model, const AdapterStack* adapters);

  // Forgets the sequence; the next one will have at most `length` tokens, which decides between short and long frequencies
  // where a model has both (LongRoPE).
  void begin(int64_t length);
  // Keeps the longest common beginning of the sequence and `tokens`, but not all of `tokens`; returns its length.
  int64_t rewind_to_common(std::span<const int32_t> tokens);
  // Appends tokens. Throws Error if they do not fit the capacity.
  void feed(std::span<const int32_t> tokens);
  // Of the last token fed; [V], in the host's own room and free to be overwritten, until the next token is fed.
  std::span<float> logits();

  int64_t length() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t capacity() const { return plan_.program.generation.capacity; }
  std::span<int32_t> sampler_room() const { return sampler_room_; }
  Executor& executor() { return *executor_; }

  void run(const Op& op, int64_t repetition) override;  // called by the executor

 private:
  void load(const Op& op);
  size_t next_step(int64_t left) const;

  const Plan& plan_;
  std::filesystem::path model_;
  const AdapterStack* adapters_;
  std::optional<Executor> executor_;
  std::span<float> logits_room_;
  std::span<int32_t> sampler_room_;
  std::vector<const Region*> steps_;   // as the Program's
  std::vector<int32_t> tokens_;        // what the caches hold, or will after feed
  std::span<const int32_t> incoming_;  // the step's tokens
  int64_t first_ = 0;                  // the place of their first in the sequence
  int64_t ahead_ = 0;                  // rows that fill the step up, at places behind the sequence
};

}  // namespace snug
