#include "plan/step_times.h"

#include <algorithm>

namespace snug {

SecondsOf seconds_by(const CostModel& model) {
  if (!model.known()) return {};
  return [&model](const Program& program, const Op& op) { return seconds_of(model, program, op); };
}

StepTimes::StepTimes(const MemoryTimeline& timeline, const SecondsOf& seconds_of, bool copies_beside)
    : timeline_(timeline), copies_beside_(copies_beside && seconds_of), clock_(*timeline.program) {
  times_.reserve(timeline.steps.size());
  for (const TimelineStep& step : timeline.steps) add(step, seconds_of ? seconds_of(*timeline.program, *step.op) : 1e-6);
}

void StepTimes::add(const TimelineStep& step, double seconds) {
  const bool computes = !copies_beside_ || step.op->lane == Lane::compute;
  if (computes) computed_.push_back(times_.size());
  if (!copies_beside_) {
    const double begin = times_.empty() ? 0 : times_.back().end;
    times_.push_back({begin, begin, begin + seconds});
    return;
  }
  if (leaves_a_region(step.group)) clock_.meet();
  times_.push_back(clock_.run(*step.op, turn_of(step), seconds));
  if (computes) waited_ += times_.back().begin - times_.back().free;
  group_ = step.group;
}

// Whether a region of the step before is over.
bool StepTimes::leaves_a_region(int32_t group) const {
  const auto at = [&](int32_t id) -> const TimelineGroup& { return timeline_.groups[static_cast<size_t>(id)]; };
  for (int32_t left = group_; left != kNone; left = at(left).parent) {
    int32_t within = group;
    while (within != kNone && at(within).region != at(left).region) within = at(within).parent;
    if (within == kNone) return true;
  }
  return false;
}

int64_t StepTimes::turn_of(const TimelineStep& step) const {
  const TimelineGroup& group = timeline_.groups[static_cast<size_t>(step.group)];
  return group.region->axis == Axis::chunk ? group.iteration : step.layer;
}

std::optional<std::pair<double, double>> StepTimes::of(const TimelineGroup& group) const {
  std::optional<std::pair<double, double>> found;
  for (int32_t i = group.first_step; i <= group.last_step; ++i) {
    const auto step = static_cast<size_t>(i);
    if (is_beside(step)) continue;
    if (!found) found.emplace(times_[step].begin, 0);
    found->second = times_[step].end;
  }
  return found;
}

double StepTimes::place_of(double time) const {
  const auto behind =
      std::partition_point(computed_.begin(), computed_.end(), [&](size_t i) { return times_[i].end <= time; });
  if (behind == computed_.end()) return static_cast<double>(times_.size());
  const LaneClock::Times& at = times_[*behind];
  const double share = time <= at.begin || at.end <= at.begin ? 0 : (time - at.begin) / (at.end - at.begin);
  return static_cast<double>(*behind) + share;
}

}  // namespace snug
