#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include "recipe/schedule_keys.h"

namespace snug {

int64_t warmup_of(const Recipe& recipe, int64_t total_steps) {
  if (recipe.warmup_steps > 0) return recipe.warmup_steps;
  return static_cast<int64_t>(std::ceil(recipe.warmup_ratio * static_cast<double>(total_steps)));
}

double peak_learning_rate(const Recipe& recipe) {
  if (recipe.learning_rate > 0.0) return recipe.learning_rate;
  return recipe.method == Method::full ? 5e-5 : 2e-4;
}

namespace {

// Of the peak, after the warm-up. `done`: of the steps after it.
double cosine_share(double cycles, double done, double least) {
  const double share = 0.5 * (1.0 + std::cos(std::numbers::pi * cycles * 2.0 * done));
  return std::max(0.0, share * (1.0 - least) + least);
}

double restarted_share(double cycles, double done) {
  return done >= 1.0 ? 0.0 : std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * std::fmod(cycles * done, 1.0))));
}

double polynomial_share(double peak, double end, double power, double done) {
  return ((peak - end) * std::pow(1.0 - done, power) + end) / peak;
}

double inverse_root_share(int64_t step, int64_t warmup, double timescale) {
  return 1.0 / std::sqrt((static_cast<double>(step - warmup) + timescale) / timescale);
}

// At the peak for a while, then half a cosine down to `least`.
double stable_share(const Recipe& recipe, int64_t since, int64_t steps, double least) {
  const double decay = schedule_argument(recipe, "num_decay_steps").value_or(0.0);
  const double stable = schedule_argument(recipe, "num_stable_steps").value_or(static_cast<double>(steps) - decay);
  const double falling = static_cast<double>(since) - stable;
  if (falling < 0.0) return 1.0;
  if (falling >= decay) return least;
  return cosine_share(schedule_argument(recipe, "num_cycles").value_or(0.5), falling / std::max(1.0, decay), least);
}

}  // namespace

double learning_rate(const Recipe& recipe, int64_t step, int64_t total_steps) {
  const double peak = peak_learning_rate(recipe);
  const int64_t warmup = warmup_of(recipe, total_steps);
  const auto argument = [&](std::string_view name, double usual) { return schedule_argument(recipe, name).value_or(usual); };
  const bool stable = recipe.lr_scheduler_type == Schedule::warmup_stable_decay;
  const double least = stable ? argument("min_lr_ratio", 0.0) : 0.0;
  if (step < warmup) {
    const double share = static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, warmup));
    return peak * (share * (1.0 - least) + least);
  }
  const double done = static_cast<double>(step - warmup) / static_cast<double>(std::max<int64_t>(1, total_steps - warmup));
  switch (recipe.lr_scheduler_type) {
    case Schedule::constant:
    case Schedule::constant_with_warmup: return peak;
    case Schedule::linear: return peak * std::max(0.0, 1.0 - done);
    case Schedule::cosine: return peak * cosine_share(argument("num_cycles", 0.5), done, 0.0);
    case Schedule::cosine_with_restarts: return peak * restarted_share(argument("num_cycles", 1.0), done);
    case Schedule::cosine_with_min_lr:
      return peak * cosine_share(argument("num_cycles", 0.5), done, argument("min_lr_rate", argument("min_lr", 0.0) / peak));
    case Schedule::polynomial: return peak * polynomial_share(peak, argument("lr_end", 1e-7), argument("power", 1.0), done);
    case Schedule::inverse_sqrt:
      return peak * inverse_root_share(step, warmup, argument("timescale", warmup > 0 ? static_cast<double>(warmup) : 1e4));
    case Schedule::warmup_stable_decay: return peak * stable_share(recipe, step - warmup, total_steps - warmup, least);
  }
  return peak;
}

}  // namespace snug
