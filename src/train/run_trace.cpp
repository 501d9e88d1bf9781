#include "train/run_trace.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "plan/bucket.h"
#include "train/process_memory.h"

namespace snug {

namespace {

constexpr int64_t kMostOps = 200'000;    // in one trace: a file of some 30 MB
constexpr int64_t kSteps = 2;            // the first pays for first touches, the second is like all others
constexpr double kMeasureEvery = 0.001;  // seconds: asking the system takes 20 µs

std::array<std::pair<std::string, std::string>, 4> facts_of(const Plan& plan) {
  return {{{"made_by", "snug train"},
           {"model", plan.model.name},
           {"time", "measured seconds"},
           {"peak_bytes", std::to_string(plan.peak_bytes)}}};
}

}  // namespace

void plan_tracing(Plan& plan) {
  const MemoryTimeline timeline = unfold(plan.program, plan.layout);
  const size_t steps = timeline.steps.size() * (sizeof(TimelineStep) + sizeof(BytesByRole) + 3 * sizeof(int64_t));
  const size_t rest = timeline.lives.size() * sizeof(TimelineLife) + timeline.groups.size() * sizeof(TimelineGroup);
  const int64_t lengths = plan.recipe.packing ? 1 : kMostBuckets;
  // Twice, for what making a timeline needs besides; the file's buffer; text at hand.
  const int64_t bytes =
      align_up(2 * lengths * static_cast<int64_t>(steps + rest) + (int64_t{2} << 20), plan.target.page_bytes);
  plan.runtime_bytes = checked_add(plan.runtime_bytes, bytes);
  plan.peak_bytes = checked_add(plan.peak_bytes, bytes);
  for (auto& peak : plan.stage_peaks)
    if (peak) *peak = checked_add(*peak, bytes);
}

RunTrace::RunTrace(const std::filesystem::path& file, const Plan& plan)
    : file_(file),
      trace_([this](std::string_view text) { file_.write(std::as_bytes(std::span(text.data(), text.size()))); },
             "snug train " + plan.model.name, facts_of(plan)),
      runtime_bytes_(plan.runtime_bytes) {
  open_.reserve(16);
  chain_.reserve(16);
}

void RunTrace::expect(const Program& program, const Layout& layout) {
  Expected& made = expected_.emplace_back();
  made.timeline = unfold(program, layout);
  made.timeline.lives = {};
  const std::vector<TimelineStep>& steps = made.timeline.steps;
  made.places.reserve(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) made.places.push_back({steps[i].op, steps[i].layer, static_cast<int32_t>(i)});
  const auto key = [](const Expected::Place& p) { return std::tuple(p.op, p.layer, p.step); };
  std::sort(made.places.begin(), made.places.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
}

const TimelineStep* RunTrace::Expected::find(const Op& op, int64_t layer, int32_t& step) const {
  const auto found = std::lower_bound(places.begin(), places.end(), std::pair(&op, layer),
                                      [](const Place& p, const auto& key) { return std::pair(p.op, p.layer) < key; });
  if (found == places.end() || found->op != &op || found->layer != layer) return nullptr;  // a layer that no trace shows
  step = found->step;
  return &timeline.steps[static_cast<size_t>(step)];
}

void RunTrace::watch(Executor& executor) {
  for (const Expected& expected : expected_)
    if (expected.timeline.program == &executor.program()) current_ = &expected;
  executor.observe(this);
}

void RunTrace::leave(Executor& executor) {
  executor.observe(nullptr);
  close_to(0);
}

bool RunTrace::step_done() { return ++steps_ >= kSteps; }

void RunTrace::finish() {
  close_to(0);
  if (ops_ >= kMostOps) trace_.slice("the trace ends after this many ops", "cut", op_end_, op_end_);
  trace_.finish();
  file_.commit();
}

double RunTrace::now() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

void RunTrace::before(const Op& op, const Binding& binding) {
  int32_t step = 0;
  if (ops_ < kMostOps && current_->find(op, binding.layer, step) != nullptr) enter(step);
  op_start_ = now();
}

void RunTrace::after(const Op& op, const Binding& binding) {
  const double end = now();
  int32_t step = 0;
  if (ops_ >= kMostOps || current_->find(op, binding.layer, step) == nullptr) return;
  ++ops_;
  op_end_ = end;
  const TimelineStep& place = current_->timeline.steps[static_cast<size_t>(step)];
  trace_.slice(label_of(binding.program, op, binding.layer), name_of(current_->timeline.stage_of(place)), op_start_, end);
  const BytesByRole& planned = current_->timeline.live[static_cast<size_t>(step)];
  if (planned != planned_) write_memory(trace_, op_start_, planned_ = planned, runtime_bytes_);
  measure();
}

// Groups that an op is in: those that it opens begin with it. What repeats (micro-batches, chunks) is known by its first
// repetition, and begins anew whenever its first op comes.
void RunTrace::enter(int32_t step) {
  const std::vector<TimelineGroup>& groups = current_->timeline.groups;
  chain_.clear();
  for (int32_t g = current_->timeline.steps[static_cast<size_t>(step)].group; g != kNone && groups[g].parent != kNone;
       g = groups[g].parent)
    chain_.push_back(g);
  std::reverse(chain_.begin(), chain_.end());
  size_t same = 0;
  while (same < std::min(chain_.size(), open_.size()) && open_[same].group == chain_[same] &&
         groups[chain_[same]].first_step != step)
    ++same;
  close_to(same);
  const double start = now();
  for (size_t depth = same; depth < chain_.size(); ++depth) {
    const TimelineGroup& group = groups[chain_[depth]];
    const bool again = closed_.group == chain_[depth] && depth == same;
    open_.push_back({chain_[depth], again ? closed_.iteration + 1 : group.iteration, start});
    closed_ = {kNone, 0, 0};
  }
}

void RunTrace::close_to(size_t depth) {
  while (open_.size() > depth) {
    closed_ = open_.back();
    open_.pop_back();
    TimelineGroup group = current_->timeline.groups[static_cast<size_t>(closed_.group)];
    group.iteration = closed_.iteration;
    trace_.slice(label_of(group), name_of(group.region->stage), closed_.start, op_end_);
  }
}

void RunTrace::measure() {
  if (op_end_ - measured_at_ < kMeasureEvery) return;
  measured_at_ = op_end_;
  const int64_t resident = process_memory().resident_bytes;
  if (resident == resident_) return;
  resident_ = resident;
  const std::pair<std::string_view, int64_t> value{"resident", resident};
  trace_.counter("measured", op_end_, std::span(&value, 1));
}

}  // namespace snug
