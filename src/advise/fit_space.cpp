#include "advise/fit_space.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"

namespace snug {

namespace {

constexpr double kPenalty[] = {0.0, 0.05, 0.30};  // by Effect
constexpr double kDiskPenalty = 0.05;             // it wears, and others use it
constexpr double kClearlyLess = 0.95, kHair = 1.02;

}  // namespace

std::vector<Structure> structures(const Recipe& asked, const std::vector<std::string>& fixed,
                                  const std::function<bool(const Alternative&)>& takes) {
  std::vector<Structure> list{{.recipe = asked, .given_up = {}}};
  for (const AlternativeGroup& group : alternatives(asked, fixed)) {
    const size_t before = list.size();
    for (size_t i = 0; i < before; ++i) {
      size_t kept = i;
      for (const Alternative& choice : group.choices) {
        if (takes && !takes(choice)) continue;
        Structure next = list[i];
        if (group.name == kDisk) {
          next.kept = std::exchange(kept, list.size());
          next.penalty += kDiskPenalty;
        }
        next.recipe = choice.applied_to(next.recipe);
        if (choice.effect != Effect::none) next.given_up.push_back(choice.note);
        next.effect = std::max(next.effect, choice.effect);
        next.penalty += kPenalty[static_cast<int>(choice.effect)];
        list.push_back(std::move(next));
      }
    }
  }
  return list;
}

std::vector<int64_t> micro_batches(const Recipe& asked) {
  std::vector<int64_t> batches;
  const int64_t effective = checked_mul(asked.batch, asked.accumulation);
  for (int64_t batch = 1; batch <= effective; ++batch)
    if (effective % batch == 0) batches.push_back(batch);
  return batches;
}

bool is_fixed(const std::vector<std::string>& fixed, std::string_view key) {
  return std::find(fixed.begin(), fixed.end(), key) != fixed.end();
}

bool is_beaten(double step_seconds, int64_t peak_bytes, Effect effect, const std::vector<FitChoice>& front) {
  return std::any_of(front.begin(), front.end(), [&](const FitChoice& better) {
    const auto clearly_less = static_cast<int64_t>(kClearlyLess * static_cast<double>(better.peak_bytes));
    return better.step_seconds <= kHair * step_seconds && peak_bytes > clearly_less && better.effect <= effect;
  });
}

}  // namespace snug
