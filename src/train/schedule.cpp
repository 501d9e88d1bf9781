#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace snug {

int64_t warmup_of(const Recipe& recipe, int64_t total_steps) {
  if (recipe.warmup_steps > 0) return recipe.warmup_steps;
  return static_cast<int64_t>(std::ceil(recipe.warmup_ratio * static_cast<double>(total_steps)));
}

double peak_learning_rate(const Recipe& recipe) {
  if (recipe.learning_rate > 0.0) return recipe.learning_rate;
  return recipe.method == Method::full ? 5e-5 : 2e-4;
}

double learning_rate(const Recipe& recipe, int64_t step, int64_t total_steps) {
  const double peak = peak_learning_rate(recipe);
  const int64_t warmup = warmup_of(recipe, total_steps);
  if (step < warmup) return peak * static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, warmup));
  const double done = static_cast<double>(step - warmup) / static_cast<double>(std::max<int64_t>(1, total_steps - warmup));
  switch (recipe.lr_scheduler_type) {
    case Schedule::constant: return peak;
    case Schedule::linear: return peak * std::max(0.0, 1.0 - done);
    case Schedule::cosine: return peak * std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * done)));
  }
  return peak;
}

}  // namespace snug
