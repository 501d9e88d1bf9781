#include "plan/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "base/utf8.h"
#include "plan/step_times.h"

namespace snug {

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : utf8_lossy(text)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

namespace {

std::string object_of(TraceWriter::Facts facts) {
  std::string out = "{";
  for (const auto& [key, value] : facts) out += (out.size() > 1 ? "," : "") + json_text(key) + ":" + json_text(value);
  return out + "}";
}

int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

// The format's unit is the microsecond.
std::string micros(int64_t nanoseconds) { return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000); }

}  // namespace

TraceWriter::TraceWriter(Sink sink, std::string_view process, Facts facts, std::string_view thread)
    : sink_(std::move(sink)) {
  sink_(fmt::format(R"({{"displayTimeUnit":"ms","otherData":{},"traceEvents":[)", object_of(facts)));
  event(fmt::format(R"({{"ph":"M","pid":1,"name":"process_name","args":{{"name":{}}}}})", json_text(process)));
  this->thread(1, thread);
}

void TraceWriter::thread(int number, std::string_view name) {
  event(fmt::format(R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":{}}}}})", number, json_text(name)));
}

void TraceWriter::event(std::string_view text) {
  sink_(first_ ? "\n" : ",\n");
  sink_(text);
  first_ = false;
}

// Times are rounded before they are subtracted, so that slices that meet still meet in nanoseconds.
void TraceWriter::slice(std::string_view name, std::string_view category, double start, double end, int thread) {
  const int64_t begin = nanoseconds(start);
  event(fmt::format(R"({{"ph":"X","pid":1,"tid":{},"name":{},"cat":{},"ts":{},"dur":{}}})", thread, json_text(name),
                    json_text(category), micros(begin), micros(nanoseconds(end) - begin)));
}

void TraceWriter::instant(std::string_view name, double time) {
  event(
      fmt::format(R"({{"ph":"i","s":"g","pid":1,"tid":1,"name":{},"ts":{}}})", json_text(name), micros(nanoseconds(time))));
}

void TraceWriter::counter(std::string_view name, double time, std::span<const std::pair<std::string_view, int64_t>> values) {
  std::string text =
      fmt::format(R"({{"ph":"C","pid":1,"name":{},"ts":{},"args":{{)", json_text(name), micros(nanoseconds(time)));
  for (size_t i = 0; i < values.size(); ++i)
    text += fmt::format("{}{}:{}", i == 0 ? "" : ",", json_text(values[i].first), values[i].second);
  event(text + "}}");
}

void TraceWriter::finish() { sink_("\n]}\n"); }

void write_memory(TraceWriter& trace, double time, const BytesByRole& live, int64_t runtime_bytes) {
  std::array<std::pair<std::string_view, int64_t>, kRoleCount + 1> values;
  for (int role = 0; role < kRoleCount; ++role)
    values[static_cast<size_t>(role)] = {name_of(static_cast<Role>(role)), live[static_cast<size_t>(role)]};
  values.back() = {"runtime", runtime_bytes};
  trace.counter("memory", time, values);
}

namespace {

std::vector<std::pair<std::string, std::string>> facts_of(const Plan& plan, const MemoryTimeline& timeline, bool timed,
                                                          const StepTimes& times) {
  const Program& program = plan.program;
  std::vector<std::pair<std::string, std::string>> facts{
      {"made_by", "snug plan"},
      {"model", plan.model.name},
      {"time", timed ? "estimated seconds" : "one microsecond an op: no times are known"},
      {"peak_bytes", std::to_string(plan.peak_bytes)},
      {"holes_bytes", std::to_string(holes_of(plan))},
      {"budget_bytes", std::to_string(plan.budget_bytes)}};
  if (times.copies_beside())
    facts.emplace_back("waits", fmt::format("{:.3f} seconds of compute wait for copies", times.waited()));
  if (program.micro_batches > 2)
    facts.emplace_back("micro_batches", fmt::format("the first and the last of {} are shown", program.micro_batches));
  if (timeline.hidden_steps > 0)
    facts.emplace_back("hidden_ops", fmt::format("{} ops of repetitions are not shown", timeline.hidden_steps));
  return facts;
}

// Bytes by role that lie away from the device, as the counter "away".
class AwayCounter {
 public:
  explicit AwayCounter(const MemoryTimeline& timeline)
      : changes_(timeline.steps.size() + 1),
        used_(std::any_of(timeline.program->storages.begin(), timeline.program->storages.end(),
                          [](const Storage& storage) { return storage.home != Home::device; })) {
    for (const Storage& storage : timeline.program->storages)
      if (storage.lifetime == Lifetime::run && storage.home != Home::device)
        now_[static_cast<size_t>(storage.role)] += storage.bytes * storage.instances;
    for (const TimelineLife& life : timeline.lives) {
      const Storage& storage = timeline.program->storage(life.storage);
      if (storage.home == Home::device) continue;
      const auto role = static_cast<size_t>(storage.role);
      changes_[static_cast<size_t>(life.birth)][role] += life.bytes;
      changes_[static_cast<size_t>(life.death) + 1][role] -= life.bytes;
    }
  }

  // The steps come in order.
  void write(TraceWriter& trace, size_t step, double time) {
    const BytesByRole& change = changes_[step];
    if (!used_ || (step > 0 && change == BytesByRole{})) return;
    std::array<std::pair<std::string_view, int64_t>, kRoleCount> values;
    for (size_t role = 0; role < kRoleCount; ++role)
      values[role] = {name_of(static_cast<Role>(role)), now_[role] += change[role]};
    trace.counter("away", time, values);
  }

 private:
  std::vector<BytesByRole> changes_;
  BytesByRole now_{};
  bool used_;
};

int thread_of(Lane lane) { return 1 + static_cast<int>(lane); }

// The lanes that the steps beside compute run on.
void name_threads(TraceWriter& trace, const MemoryTimeline& timeline, const StepTimes& times) {
  std::set<Lane> lanes;
  for (size_t i = 0; i < timeline.steps.size(); ++i)
    if (times.is_beside(i)) lanes.insert(timeline.steps[i].op->lane);
  for (const Lane lane : lanes) trace.thread(thread_of(lane), name_of(lane));
}

void write_step(TraceWriter& trace, const MemoryTimeline& timeline, const StepTimes& times, size_t i) {
  const TimelineStep& step = timeline.steps[i];
  const LaneClock::Times& time = times[i];
  const bool beside = times.is_beside(i);
  if (!beside && time.begin > time.free) trace.slice("waits for copies", "wait", time.free, time.begin);
  trace.slice(label_of(*timeline.program, *step.op, step.layer), name_of(timeline.stage_of(step)), time.begin, time.end,
              beside ? thread_of(step.op->lane) : 1);
}

}  // namespace

void write_trace(const Plan& plan, const TraceWriter::Sink& sink, const SecondsOf& seconds_of) {
  const MemoryTimeline timeline = unfold(plan.program, plan.layout);
  const StepTimes times(timeline, seconds_of, plan.target.cost.copies_beside);
  TraceWriter trace(sink, "snug plan " + plan.model.name, facts_of(plan, timeline, static_cast<bool>(seconds_of), times));
  name_threads(trace, timeline, times);
  for (const TimelineGroup& group : timeline.groups) {
    if (group.parent == kNone) continue;  // the whole needs no slice
    if (const auto time = times.of(group))
      trace.slice(label_of(group), name_of(group.region->stage), time->first, time->second);
  }
  AwayCounter away(timeline);
  double now = 0;  // a copy may begin before the op that it stands behind
  for (size_t i = 0; i < timeline.steps.size(); ++i) {
    write_step(trace, timeline, times, i);
    now = std::max(now, times[i].begin);
    if (i == 0 || timeline.live[i] != timeline.live[i - 1]) write_memory(trace, now, timeline.live[i], plan.runtime_bytes);
    away.write(trace, i, now);
  }
  trace.finish();
}

}  // namespace snug
