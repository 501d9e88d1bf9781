#include "advise/fit.h"

#include <algorithm>
#include <map>
#include <queue>

#include "advise/fit_space.h"
#include "program/compile.h"

namespace snug {

namespace {

// What the space is made of.
struct Space {
  std::vector<Structure> structures;
  std::vector<int64_t> batches;            // ascending
  std::vector<Alternative> checkpointing;  // from nothing made again to as much as it takes; empty: as asked
  Recipe asked;

  Recipe recipe(size_t structure, size_t batch, size_t checkpoints) const {
    Recipe recipe = micro_batches_of(batches[batch], asked).applied_to(structures[structure].recipe);
    return checkpointing.empty() ? recipe : checkpointing[checkpoints].applied_to(std::move(recipe));
  }
  size_t checkpoint_choices() const { return std::max<size_t>(1, checkpointing.size()); }
};

Space space_of(const ModelSpec& model, const Recipe& asked, const std::vector<std::string>& fixed, const Target& target) {
  const auto takes = [&](const Alternative& choice) { return target.kind == TargetKind::cpu || !is_of_disk(choice); };
  Space space{
      .structures = structures(asked, fixed, takes), .batches = micro_batches(asked), .checkpointing = {}, .asked = asked};
  if (is_fixed(fixed, "gradient_checkpointing")) return space;
  const bool whole_blocks = is_fixed(fixed, "checkpoint_layers") || is_fixed(fixed, "checkpoint_parts");
  if (!whole_blocks) space.checkpointing = {recomputing(0, model.layers), recomputing_to_fit()};
  // What is made again is settled, but not whether: all of it or none.
  if (whole_blocks && asked.checkpoint_layers.empty() && asked.checkpoint_parts.empty())
    space.checkpointing = {recomputing(0, model.layers), recomputing(model.layers, model.layers)};
  return space;
}

struct Point {
  size_t structure = 0, batch = 0, checkpoints = 0;  // indices into the space
  int64_t peak_bytes = 0;
  double seconds = 0, score = 0;
};

class Search {
 public:
  Search(const ModelSpec& model, Space space, const Target& target, int64_t budget)
      : model_(model), space_(std::move(space)), target_(target), budget_(budget) {}

  FitReport run() {
    for (size_t structure = 0; structure < space_.structures.size(); ++structure) visit(structure);
    FitReport report;
    choose_front(report);
    if (report.front.empty() && least_) report.least = laid_out(*least_, report);
    report.candidates = candidates_;
    report.compiled = compiled_;
    return report;
  }

 private:
  // The fastest that fits of each micro-batch: nothing is made again where that fits.
  void visit(size_t structure) {
    const size_t most = space_.checkpoint_choices() - 1;
    bool full = false;
    for (size_t batch = 0; batch < space_.batches.size(); ++batch) {
      if (!is_sound(space_.recipe(structure, batch, most))) continue;
      candidates_ += static_cast<int64_t>(most) + 1;
      if (full || is_needless(structure, batch)) continue;
      const Point& safest = point(structure, batch, most);
      if (!least_ || safest.peak_bytes < least_->peak_bytes) least_ = safest;
      full = !fits(safest);  // and so are larger ones
      if (full) continue;
      for (size_t checkpoints = 0; checkpoints < most && !fits(point(structure, batch, checkpoints)); ++checkpoints) {
      }
    }
  }

  // What waits on disk takes time: not where all fits with less there and nothing made again.
  bool is_needless(size_t structure, size_t batch) const {
    const std::optional<size_t> kept = space_.structures[structure].kept;
    if (!kept || space_.checkpointing.empty()) return false;
    const auto found = points_.find(key_of(*kept, batch, 0));
    return (found != points_.end() && fits(found->second)) || is_needless(*kept, batch);
  }

  size_t key_of(size_t structure, size_t batch, size_t checkpoints) const {
    return (structure * space_.batches.size() + batch) * space_.checkpoint_choices() + checkpoints;
  }

  bool fits(const Point& point) const { return point.peak_bytes <= budget_; }

  // What is made again to fit depends on the holes of layouts.
  Estimate placed(const Recipe& recipe) const {
    const Plan plan = plan_with_all_inputs(model_, recipe, target_);
    return {.peak_bytes = plan.peak_bytes,
            .overfull_home = plan.overfull_home(),
            .step_time = step_time(target_.cost, plan.program)};
  }

  const Point& point(size_t structure, size_t batch, size_t checkpoints) {
    const size_t key = key_of(structure, batch, checkpoints);
    const auto found = points_.find(key);
    if (found != points_.end()) return found->second;
    const Recipe recipe = space_.recipe(structure, batch, checkpoints);
    const Estimate estimated = recipe.checkpoint_to_budget ? placed(recipe) : estimate(model_, recipe, target_);
    ++compiled_;
    const double seconds = estimated.step_time.seconds;
    return points_[key] = {structure,   batch,
                           checkpoints, estimated.peak_bytes,
                           seconds,     seconds * (1.0 + space_.structures[structure].penalty)};
  }

  FitChoice laid_out(const Point& p, FitReport& report) const {
    const Structure& structure = space_.structures[p.structure];
    FitChoice choice{.recipe = space_.recipe(p.structure, p.batch, p.checkpoints),
                     .settings = {},
                     .effect = structure.effect,
                     .given_up = structure.given_up};
    choice.settings = differences(space_.asked, choice.recipe);
    choice.peak_bytes = plan_with_all_inputs(model_, choice.recipe, target_).peak_bytes;
    choice.step_seconds = p.seconds;
    choice.score = p.score;
    ++report.laid_out;
    return choice;
  }

  // Best first. What fits by what is live but not when laid out gives way to the same with more made again.
  void choose_front(FitReport& report) {
    const auto worse = [](const Point& a, const Point& b) {
      if (a.score != b.score) return a.score > b.score;
      return a.peak_bytes != b.peak_bytes ? a.peak_bytes > b.peak_bytes : a.checkpoints > b.checkpoints;
    };
    std::priority_queue<Point, std::vector<Point>, decltype(worse)> queue(worse);
    for (const auto& [key, p] : points_)
      if (fits(p)) queue.push(p);
    while (!queue.empty() && report.front.size() < kMostShown) {
      const Point p = queue.top();
      queue.pop();
      if (is_beaten(p.seconds, p.peak_bytes, space_.structures[p.structure].effect, report.front)) continue;
      FitChoice choice = laid_out(p, report);
      if (choice.peak_bytes <= budget_) {
        report.front.push_back(std::move(choice));
      } else if (p.checkpoints + 1 < space_.checkpoint_choices()) {
        queue.push(point(p.structure, p.batch, p.checkpoints + 1));
      }
    }
  }

  const ModelSpec& model_;
  Space space_;
  const Target& target_;
  int64_t budget_;
  std::map<size_t, Point> points_;
  std::optional<Point> least_;
  int64_t candidates_ = 0, compiled_ = 0;
};

}  // namespace

FitReport fit(const ModelSpec& model, const Recipe& asked, const std::vector<std::string>& fixed, const Target& target) {
  const int64_t budget = asked.memory_bytes > 0 ? asked.memory_bytes : target.memory_bytes;
  return Search(model, space_of(model, asked, fixed, target), target, budget).run();
}

std::vector<FitChoice> fit_space(const ModelSpec& model, const Recipe& asked, const std::vector<std::string>& fixed,
                                 const Target& target) {
  const Space space = space_of(model, asked, fixed, target);
  std::vector<FitChoice> choices;
  for (size_t structure = 0; structure < space.structures.size(); ++structure)
    for (size_t batch = 0; batch < space.batches.size(); ++batch)
      for (size_t checkpoints = 0; checkpoints < space.checkpoint_choices(); ++checkpoints) {
        const Structure& s = space.structures[structure];
        FitChoice choice{.recipe = space.recipe(structure, batch, checkpoints),
                         .settings = {},
                         .effect = s.effect,
                         .given_up = s.given_up};
        choice.score = 1.0 + s.penalty;  // times its seconds
        if (is_sound(choice.recipe)) choices.push_back(std::move(choice));
      }
  return choices;
}

}  // namespace snug
