#pragma once
// Learning-rate schedules, as transformers.get_scheduler computes them.

#include <cstdint>

#include "recipe/recipe.h"

namespace snug {

// Warm-up steps of a run of `total_steps`: warmup_steps, else ceil(warmup_ratio * total_steps).
int64_t warmup_of(const Recipe& recipe, int64_t total_steps);

// The recipe's learning rate, or the method's own where the recipe leaves it open.
double peak_learning_rate(const Recipe& recipe);

// The learning rate of optimizer step `step` (from 0): a linear warm-up from 0, then as lr_scheduler_type says.
double learning_rate(const Recipe& recipe, int64_t step, int64_t total_steps);

}  // namespace snug
