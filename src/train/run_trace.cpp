#include "train/run_trace.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "plan/bucket.h"
#include "run/process_memory.h"

namespace snug {

namespace {

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

RunTrace::RunTrace(const std::filesystem::path& file, const Plan& plan, int64_t most_ops)
    : file_(file),
      trace_([this](std::string_view text) { file_.write(std::as_bytes(std::span(text.data(), text.size()))); },
             "snug train " + plan.model.name, facts_of(plan)),
      runtime_bytes_(plan.runtime_bytes),
      most_ops_(most_ops) {
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

Observer* RunTrace::watch(const Program& program) {
  for (const Expected& expected : expected_)
    if (expected.timeline.program == &program) current_ = &expected;
  if (begin_ == Clock::time_point()) begin_ = Clock::now();
  return this;
}

bool RunTrace::step_done() { return ++steps_ >= kSteps; }

void RunTrace::finish() {
  close_to(0);
  if (ops_ >= most_ops_) trace_.slice("the trace ends after this many ops", "cut", op_end_, op_end_);
  trace_.finish();
  file_.commit();
}

double RunTrace::now() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

void RunTrace::before(const Op& op, const Binding& binding) {
  int32_t step = 0;
  if (ops_ < most_ops_ && current_->find(op, binding.layer, step) != nullptr) enter(step, binding.chunk);
  op_start_ = now();
}

void RunTrace::after(const Op& op, const Binding& binding) {
  const double end = now();
  int32_t step = 0;
  if (ops_ >= most_ops_ || current_->find(op, binding.layer, step) == nullptr) return;
  ++ops_;
  op_end_ = end;
  const TimelineStep& place = current_->timeline.steps[static_cast<size_t>(step)];
  trace_.slice(label_of(binding.program, op, binding.layer), name_of(current_->timeline.stage_of(place)), op_start_, end);
  const BytesByRole& planned = current_->timeline.live[static_cast<size_t>(step)];
  if (planned != planned_) write_memory(trace_, op_start_, planned_ = planned, runtime_bytes_);
  measure();
}

// Groups that an op is in: those that it opens begin with it. Of what repeats the timeline has the first repetition: a
// micro-batch begins anew whenever its first op comes, a chunk is known by its number.
void RunTrace::enter(int32_t step, int64_t chunk) {
  const std::vector<TimelineGroup>& groups = current_->timeline.groups;
  const auto group_of = [&](int32_t id) -> const TimelineGroup& { return groups[static_cast<size_t>(id)]; };
  const auto is_chunk = [&](int32_t id) { return group_of(id).region->axis == Axis::chunk; };
  chain_.clear();
  for (int32_t id = current_->timeline.steps[static_cast<size_t>(step)].group; group_of(id).parent != kNone;
       id = group_of(id).parent)
    chain_.push_back(id);
  std::reverse(chain_.begin(), chain_.end());
  const auto goes_on = [&](const Slice& open, int32_t id) {
    if (open.group != id || (is_chunk(id) && open.iteration != chunk)) return false;
    return chunk > 0 || group_of(id).first_step != step;
  };
  size_t same = 0;
  while (same < std::min(chain_.size(), open_.size()) && goes_on(open_[same], chain_[same])) ++same;
  close_to(same);
  const double start = now();
  for (size_t depth = same; depth < chain_.size(); ++depth) {
    const int32_t id = chain_[depth];
    const bool again = group_of(id).region->axis == Axis::micro_batch && depth == same && closed_.group == id;
    const int64_t iteration = again ? closed_.iteration + 1 : is_chunk(id) ? chunk : group_of(id).iteration;
    open_.push_back({id, iteration, start});
  }
  closed_ = {kNone, 0, 0};
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
