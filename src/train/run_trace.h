#pragma once
// A trace of the run itself, in the plan's own words (plan/trace.h): the load and the first two steps, op by op, with the
// times they took, the memory that the plan has for each, and the process's resident memory. A run that is not traced pays
// nothing for it: an Executor without an Observer compares one pointer an op.

#include <chrono>
#include <filesystem>
#include <list>
#include <string>
#include <vector>

#include "base/file.h"
#include "plan/timeline.h"
#include "plan/trace.h"
#include "run/executor.h"

namespace snug {

// Adds to the plan's runtime bytes what tracing holds beside the arena.
void plan_tracing(Plan& plan);

class RunTrace final : public Observer {
 public:
  static constexpr int64_t kMostOps = 200'000;  // a file of some 30 MB

  // Throws Error if the file cannot be written. It takes its name in `finish`.
  RunTrace(const std::filesystem::path& file, const Plan& plan, int64_t most_ops = kMostOps);

  // Prepares for ops of a Program; both must outlive this.
  void expect(const Program& program, const Layout& layout);

  // What to observe an executor of this Program with, which must be expected, until `leave`.
  Observer* watch(const Program& program);
  void leave() { close_to(0); }

  // Counts a step as traced; true once there are enough.
  bool step_done();

  void finish();

  void before(const Op& op, const Binding& binding) override;
  void after(const Op& op, const Binding& binding) override;

 private:
  // A Program that is expected: where each of its ops stands on its timeline.
  struct Expected {
    struct Place {
      const Op* op;
      int64_t layer;
      int32_t step;
    };
    MemoryTimeline timeline;
    std::vector<Place> places;  // by op, then layer; of repetitions the first
    const TimelineStep* find(const Op& op, int64_t layer, int32_t& step) const;
  };
  struct Slice {
    int32_t group;
    int64_t iteration;  // of the region that the group stands for
    double start;
  };

  double now() const;
  void enter(int32_t step, int64_t chunk);
  void close_to(size_t depth);
  void measure();

  using Clock = std::chrono::steady_clock;
  OutputFile file_;
  TraceWriter trace_;
  int64_t runtime_bytes_, most_ops_;
  std::list<Expected> expected_;
  const Expected* current_ = nullptr;
  std::vector<Slice> open_;
  Slice closed_{kNone, 0, 0};  // the last repetition that ended
  std::vector<int32_t> chain_;
  Clock::time_point begin_;  // when the first op was awaited
  double op_start_ = 0, op_end_ = 0, measured_at_ = -1;
  BytesByRole planned_{};
  int64_t resident_ = 0, ops_ = 0, steps_ = 0;
};

}  // namespace snug
