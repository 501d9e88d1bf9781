#pragma once
// solve: the largest micro-batch, length or rank with which a recipe still fits, found by planning.

#include <cstdint>
#include <optional>
#include <string_view>

#include "advise/engine.h"
#include "plan/plan.h"

namespace snug {

enum class Quantity : uint8_t { batch, seq, rank };

// "batch", "seq" or "rank"; none for another word.
std::optional<Quantity> quantity_named(std::string_view word);
const char* key_of(Quantity quantity);  // "per_device_train_batch_size"

struct Solution {
  int64_t value = 0;
  Plan plan;               // with that value: it fits
  std::string stopped_by;  // "the budget", "the model's positions"
};

// Lengths go in steps of 64 tokens, the others of one. None if not even the smallest fits. Throws Error if the recipe has no
// such quantity.
std::optional<Solution> largest_that_fits(const ModelSpec& model, const Recipe& recipe, const Target& target,
                                          Quantity quantity);

// The same by another engine's need: the value, and the bytes that it needs of the engine's budget.
struct EngineSolution {
  int64_t value = 0;
  int64_t peak_bytes = 0;
  Recipe recipe;
  std::string stopped_by;
};
std::optional<EngineSolution> largest_that_fits(const ModelSpec& model, const Recipe& recipe, Engine& engine,
                                                Quantity quantity);

}  // namespace snug
