#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace snug {

int64_t warmup_of(const Recipe& recipe, int64_t total_steps) {
  if (recipe.warmup_steps > 0) return recipe.warmup_steps;
  return static_cast<int64_t>(std::ceil(recipe.warmup_ratio * static_cast<double>(total_steps)));
}

double learning_rate(const Recipe& recipe, int64_t step, int64_t total_steps) {
  const int64_t warmup = warmup_of(recipe, total_steps);
  if (step < warmup) return recipe.learning_rate * static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, warmup));
  const double done = static_cast<double>(step - warmup) / static_cast<double>(std::max<int64_t>(1, total_steps - warmup));
  switch (recipe.lr_scheduler_type) {
    case Schedule::constant: return recipe.learning_rate;
    case Schedule::linear: return recipe.learning_rate * std::max(0.0, 1.0 - done);
    case Schedule::cosine: return recipe.learning_rate * std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * done)));
  }
  return recipe.learning_rate;
}

}  // namespace snug
