#include "plan/trace.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "base/utf8.h"

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
  event(fmt::format(R"({{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{{"name":{}}}}})", json_text(thread)));
}

void TraceWriter::event(std::string_view text) {
  sink_(first_ ? "\n" : ",\n");
  sink_(text);
  first_ = false;
}

// Times are rounded before they are subtracted, so that slices that meet still meet in nanoseconds.
void TraceWriter::slice(std::string_view name, std::string_view category, double start, double end) {
  const int64_t begin = nanoseconds(start);
  event(fmt::format(R"({{"ph":"X","pid":1,"tid":1,"name":{},"cat":{},"ts":{},"dur":{}}})", json_text(name),
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

// When each step begins; one more for the end.
std::vector<double> times_of(const MemoryTimeline& timeline, const SecondsOf& seconds_of) {
  std::vector<double> times{0.0};
  times.reserve(timeline.steps.size() + 1);
  for (const TimelineStep& step : timeline.steps)
    times.push_back(times.back() + (seconds_of ? seconds_of(*timeline.program, *step.op) : 1e-6));
  return times;
}

std::vector<std::pair<std::string, std::string>> facts_of(const Plan& plan, const MemoryTimeline& timeline, bool timed) {
  const Program& program = plan.program;
  std::vector<std::pair<std::string, std::string>> facts{
      {"made_by", "snug plan"},
      {"model", plan.model.name},
      {"time", timed ? "estimated seconds" : "one microsecond an op: no times are known"},
      {"peak_bytes", std::to_string(plan.peak_bytes)},
      {"holes_bytes", std::to_string(holes_of(plan))},
      {"budget_bytes", std::to_string(plan.budget_bytes)}};
  if (program.micro_batches > 2)
    facts.emplace_back("micro_batches", fmt::format("the first and the last of {} are shown", program.micro_batches));
  if (timeline.hidden_steps > 0)
    facts.emplace_back("hidden_ops", fmt::format("{} ops of repetitions are not shown", timeline.hidden_steps));
  return facts;
}

}  // namespace

void write_trace(const Plan& plan, const TraceWriter::Sink& sink, const SecondsOf& seconds_of) {
  const MemoryTimeline timeline = unfold(plan.program, plan.layout);
  const std::vector<double> times = times_of(timeline, seconds_of);
  TraceWriter trace(sink, "snug plan " + plan.model.name, facts_of(plan, timeline, static_cast<bool>(seconds_of)));
  for (const TimelineGroup& group : timeline.groups) {
    if (group.parent == kNone || group.last_step < group.first_step) continue;  // the whole needs no slice
    const double start = times[static_cast<size_t>(group.first_step)];
    trace.slice(label_of(group), name_of(group.region->stage), start, times[static_cast<size_t>(group.last_step) + 1]);
  }
  for (size_t i = 0; i < timeline.steps.size(); ++i) {
    const TimelineStep& step = timeline.steps[i];
    trace.slice(label_of(plan.program, *step.op, step.layer), name_of(timeline.stage_of(step)), times[i], times[i + 1]);
    if (i == 0 || timeline.live[i] != timeline.live[i - 1])
      write_memory(trace, times[i], timeline.live[i], plan.runtime_bytes);
  }
  trace.finish();
}

}  // namespace snug
