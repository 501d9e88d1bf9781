#include "explain/growth.h"

#include <algorithm>
#include <map>
#include <span>

#include "torch/words.h"

namespace snug {

namespace {

constexpr size_t kWarmUp = 2, kFewest = 3;     // steps; ends of steps that are compared
constexpr size_t kMostCompared = 64;           // ends of steps, spread over the trace
constexpr int64_t kLeast = int64_t{64} << 10;  // bytes in all that are worth a line

// So many of them at most, the first and the last included.
std::vector<size_t> spread(const std::vector<size_t>& all) {
  if (all.size() <= kMostCompared) return all;
  std::vector<size_t> some;
  for (size_t i = 0; i < kMostCompared; ++i) some.push_back(all[i * (all.size() - 1) / (kMostCompared - 1)]);
  return some;
}

struct Held {
  int64_t requested = 0, bytes = 0, blocks = 0;  // bytes: of the blocks, with what is not split off
};

// From where it is there on: a first round often comes by other lines than those that follow.
std::span<const Held> present(std::span<const Held> held) {
  size_t first = 0;
  while (first + 1 < held.size() && held[first + 1].requested == 0) ++first;
  return held.size() - first >= std::max(kFewest, held.size() / 2) ? held.subspan(first) : held;
}

// At the begin of each round compared: it never shrinks, and grows nearly always.
bool grows(std::span<const Held> held) {
  size_t up = 0;
  for (size_t i = 1; i < held.size(); ++i) {
    if (held[i].requested < held[i - 1].requested) return false;
    up += held[i].requested > held[i - 1].requested ? 1 : 0;
  }
  return 5 * up >= 4 * (held.size() - 1);
}

bool is_worth_a_line(std::span<const Held> held) { return held.back().requested - held.front().requested >= kLeast; }

// Made once and kept for good: in the first rounds they look like growth.
bool is_made_once(Holding holding) {
  return holding == Holding::optimizer || holding == Holding::gradients || holding == Holding::weights ||
         holding == Holding::workspaces || holding == Holding::older;
}

class Comparison {
 public:
  Comparison(const Snapshot& snapshot, int device, const std::vector<size_t>& begins)
      : compared_(spread(begins)), active_(compared_.size()) {
    Replay replay(snapshot, device);
    for (size_t i = 0; i < compared_.size(); ++i) {
      replay.advance_to(compared_[i]);
      active_[i].requested = replay.totals().requested_bytes;
      for (const LiveStack& live : live_by_stack(replay)) {
        if (live.older) continue;
        std::vector<Held>& held = by_stack_[live.stack];
        held.resize(compared_.size());
        held[i].requested += live.requested_bytes;
        held[i].bytes += live.bytes;
        held[i].blocks += live.blocks;
      }
    }
  }

  void tell(Growth& growth, StackReader& reader) const {
    const auto rounds = growth.rounds() - 1;
    if (grows(active_) && is_worth_a_line(active_))
      growth.active_a_step = (active_.back().requested - active_.front().requested) / rounds;
    for (const auto& [stack, all] : by_stack_) {
      const std::span<const Held> held = present(all);
      const StackReading& reading = reader.read(stack);
      if (!grows(held) || (compared_.size() < kWarmUp + kFewest && is_made_once(reading.holding))) continue;
      const Held &first = held.front(), &last = held.back();
      const int64_t grown = last.bytes - first.bytes,
                    steps = rounds * static_cast<int64_t>(held.size() - 1) / static_cast<int64_t>(all.size() - 1);
      growth.kept_a_step += (last.requested - first.requested) / steps;
      if (!is_worth_a_line(held)) continue;
      growth.list.push_back({.holding = reading.holding,
                             .place = reading.own ? reading.own : reading.caller,
                             .stack = stack,
                             .bytes_a_step = (last.requested - first.requested) / steps,
                             .blocks_a_step = (last.blocks - first.blocks) / steps,
                             .bytes = std::min(last.bytes, grown + grown / steps * growth.warm_up)});
    }
    std::ranges::stable_sort(growth.list, [](const Growing& a, const Growing& b) { return a.bytes > b.bytes; });
  }

 private:
  std::vector<size_t> compared_;
  std::vector<Held> active_;
  std::map<StackId, std::vector<Held>> by_stack_;
};

}  // namespace

int64_t Growth::bytes() const {
  int64_t sum = 0;
  for (const Growing& one : list) sum += one.bytes;
  return sum;
}

// By the annotations "Optimizer.step#AdamW.step": the first event at or after each start.
std::vector<size_t> annotated_steps(const Snapshot& snapshot, int device) {
  std::vector<int64_t> times;
  for (const Annotation& a : snapshot.annotations)
    if (a.start && (a.device == device || a.device < 0) && snapshot.texts[a.name].starts_with("Optimizer.step#"))
      times.push_back(a.time_us);
  std::sort(times.begin(), times.end());
  std::vector<size_t> ends;
  size_t next = 0;
  for (size_t i = 0; i < snapshot.event_count(device) && next < times.size(); ++i) {
    const int64_t time = snapshot.event(device, i).time_us;
    if (time == 0) return {};
    if (time < times[next]) continue;
    ends.push_back(i);
    while (next < times.size() && times[next] <= time) ++next;
  }
  return ends;
}

Growth growth_of(const Snapshot& snapshot, int device, std::vector<size_t> begins, StackReader& reader) {
  const size_t warm_up = begins.size() >= kWarmUp + kFewest ? kWarmUp : 0;
  begins.erase(begins.begin(), begins.begin() + static_cast<ptrdiff_t>(warm_up));
  Growth growth{.begins = std::move(begins), .warm_up = static_cast<int64_t>(warm_up), .active_a_step = {}, .list = {}};
  if (growth.begins.size() >= kFewest) Comparison(snapshot, device, growth.begins).tell(growth, reader);
  return growth;
}

}  // namespace snug
