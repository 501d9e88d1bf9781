#include "report/explain_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "explain/phases.h"
#include "explain/size_text.h"
#include "plan/trace.h"

namespace snug {

namespace {

// When events happened, in seconds, never backwards.
class Clock {
 public:
  Clock(const Snapshot& snapshot, int device) : snapshot_(snapshot), device_(device) {
    if (snapshot.event_count(device) > 0) base_us_ = snapshot.event(device, 0).time_us;
  }

  bool told() const { return base_us_ != 0; }

  // Of the state at a position: the time of the event that led to it; 0 before any.
  double at(size_t position) {
    if (position == 0) return 0;
    if (!told()) return static_cast<double>(position) * 1e-6;
    latest_ = std::max(latest_, of(snapshot_.event(device_, position - 1).time_us));
    return latest_;
  }

  double of(int64_t time_us) const {
    constexpr int64_t kLongest = 1'000'000'000'000'000;  // 31 years: what a trace's nanoseconds hold
    int64_t since = 0;
    if (__builtin_sub_overflow(time_us, base_us_, &since)) since = time_us < base_us_ ? 0 : kLongest;
    return static_cast<double>(std::clamp<int64_t>(since, -1, kLongest) + 1) * 1e-6;
  }

 private:
  const Snapshot& snapshot_;
  const int device_;
  int64_t base_us_ = 0;
  double latest_ = 0;
};

// What is held at each position, by purpose and reserved, written when it changes.
class Counters {
 public:
  Counters(const Snapshot& snapshot, int device) : reader_(snapshot), table_(reader_), replay_(snapshot, device) {
    find_series(snapshot, device);
    follow(replay_, [this](const LiveBlock& block, int64_t sign) {
      held_[holding_of(block)] += sign * block.bytes;
      changed_ = true;
    });
  }

  // At every position, from the first on.
  void write(TraceWriter& trace, Clock& clock) {
    write_held(trace, 0);
    write_reserved(trace, 0);
    int64_t reserved = replay_.totals().reserved_bytes;
    changed_ = false;
    while (replay_.next()) {
      const double time = clock.at(replay_.position());
      if (changed_) write_held(trace, time);
      if (replay_.totals().reserved_bytes != reserved) write_reserved(trace, time);
      reserved = replay_.totals().reserved_bytes;
      changed_ = false;
    }
  }

 private:
  using Change = std::function<void(const LiveBlock& block, int64_t sign)>;

  // Calls `change` for what is live, and for what begins and ends from here on.
  static void follow(Replay& replay, const Change& change) {
    for (const auto& [address, block] : replay.live()) change(block, 1);
    replay.tell({.block_began = [change](int64_t, const LiveBlock& block) { change(block, 1); },
                 .block_ended = [change](int64_t, const LiveBlock& block) { change(block, -1); },
                 .memory_added = [](int64_t, const SegmentExtent&) {},
                 .memory_removed = [](int64_t, int64_t) {}});
  }

  // Purposes that never hold anything would double the file.
  void find_series(const Snapshot& snapshot, int device) {
    std::array<bool, kHoldingCount> ever{};
    Replay replay(snapshot, device);
    follow(replay, [&](const LiveBlock& block, int64_t) { ever[holding_of(block)] = true; });
    while (replay.next()) {
    }
    for (size_t i = 0; i < ever.size(); ++i)
      if (ever[i]) series_.push_back(i);
  }

  size_t holding_of(const LiveBlock& block) {
    return static_cast<size_t>(table_.list()[table_.index_of(block.stack, block.event == LiveBlock::kBefore)].holding);
  }

  void write_held(TraceWriter& trace, double time) const {
    std::array<std::pair<std::string_view, int64_t>, kHoldingCount> values;
    for (size_t i = 0; i < series_.size(); ++i) values[i] = {name_of(static_cast<Holding>(series_[i])), held_[series_[i]]};
    trace.counter("memory", time, std::span(values).first(series_.size()));
  }

  void write_reserved(TraceWriter& trace, double time) const {
    const std::pair<std::string_view, int64_t> value{"reserved", replay_.totals().reserved_bytes};
    trace.counter("reserved", time, std::span(&value, 1));
  }

  StackReader reader_;
  HolderTable table_;
  Replay replay_;
  std::vector<size_t> series_;  // purposes that are written
  std::array<int64_t, kHoldingCount> held_{};
  bool changed_ = false;
};

}  // namespace

void write_explain_trace(const Snapshot& snapshot, const SnapshotExplanation& e, const std::string& file,
                         const PageSink& sink) {
  Clock clock(snapshot, e.device);
  const std::vector<std::pair<std::string, std::string>> facts{
      {"made_by", "snug explain"},
      {"file", file},
      {"answer", e.diagnosis.answer},
      {"time", clock.told() ? "microseconds as recorded" : "one microsecond an event: no times were recorded"},
      {"device", std::to_string(e.device)},
      {"event", std::to_string(e.event)},
      {"active_bytes", std::to_string(e.totals.active_bytes)},
      {"reserved_bytes", std::to_string(e.totals.reserved_bytes)}};
  TraceWriter trace(sink, "snug explain " + file, facts, "phases");
  for (const Phase& phase : phases_of(snapshot, e.device))
    trace.slice(snapshot.texts[phase.name], "annotation", clock.of(phase.begin_us), clock.of(phase.end_us));
  for (const size_t i : oom_events(snapshot, e.device)) {
    const Event& event = snapshot.event(e.device, i);
    trace.instant(fmt::format("out of memory: {} asked for, {} free", size_text(event.bytes), size_text(event.address)),
                  clock.told() ? clock.of(event.time_us) : static_cast<double>(i + 1) * 1e-6);
  }
  Counters(snapshot, e.device).write(trace, clock);
  trace.finish();
}

}  // namespace snug
