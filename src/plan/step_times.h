#pragma once
// When the steps of a timeline run: one after the other, or where copies have lanes of their own, those beside compute.

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "plan/cost.h"
#include "plan/lane_clock.h"
#include "plan/timeline.h"

namespace snug {

// Seconds that an op takes.
using SecondsOf = std::function<double(const Program& program, const Op& op)>;

// Those of a cost model, which must outlive it; empty where nothing is known.
SecondsOf seconds_by(const CostModel& model);

class StepTimes {
 public:
  // Without `seconds_of` every step takes a microsecond, and none runs beside another. The timeline must outlive this.
  StepTimes(const MemoryTimeline& timeline, const SecondsOf& seconds_of, bool copies_beside);

  const LaneClock::Times& operator[](size_t step) const { return times_[step]; }
  bool is_beside(size_t step) const { return copies_beside_ && timeline_.steps[step].op->lane != Lane::compute; }
  bool copies_beside() const { return copies_beside_; }
  double waited() const { return waited_; }  // seconds that compute waits for copies

  // Those of a group's steps on the compute lane; nothing if it has none.
  std::optional<std::pair<double, double>> of(const TimelineGroup& group) const;

  // Where on the timeline compute is at a time, in steps.
  double place_of(double time) const;

 private:
  void add(const TimelineStep& step, double seconds);
  bool leaves_a_region(int32_t group) const;
  int64_t turn_of(const TimelineStep& step) const;

  const MemoryTimeline& timeline_;
  bool copies_beside_;
  LaneClock clock_;
  std::vector<LaneClock::Times> times_;
  std::vector<size_t> computed_;  // steps of the compute lane
  int32_t group_ = kNone;         // of the step before
  double waited_ = 0;
};

}  // namespace snug
