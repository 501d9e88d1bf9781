#include "explain/growth.h"

#include <algorithm>
#include <map>

#include "torch/words.h"

namespace snug {

namespace {

constexpr size_t kWarmUp = 2, kFewest = 3;     // steps; ends of steps that are compared
constexpr size_t kMostCompared = 64;           // ends of steps, spread over the trace
constexpr int64_t kLeast = int64_t{64} << 10;  // bytes in all that are worth a line

// By the annotations "Optimizer.step#AdamW.step": the first event at or after each start.
std::vector<size_t> ends_by_annotations(const Snapshot& snapshot, int device) {
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

// By frames: where the optimizer allocates after something else has.
std::vector<size_t> ends_by_frames(const Snapshot& snapshot, int device, StackReader& reader) {
  std::vector<size_t> ends;
  bool inside = false;
  for (size_t i = 0; i < snapshot.event_count(device); ++i) {
    const Event& event = snapshot.event(device, i);
    if (event.action != Action::alloc) continue;
    const bool now = reader.read(event.stack).holding == Holding::optimizer;
    if (now && !inside) ends.push_back(i);
    inside = now;
  }
  return ends;
}

// So many of them at most, the first and the last included.
std::vector<size_t> spread(const std::vector<size_t>& all) {
  if (all.size() <= kMostCompared) return all;
  std::vector<size_t> some;
  for (size_t i = 0; i < kMostCompared; ++i) some.push_back(all[i * (all.size() - 1) / (kMostCompared - 1)]);
  return some;
}

// Bytes at the end of each step compared: they never shrink, and grow nearly always.
bool grows(const std::vector<int64_t>& bytes) {
  size_t up = 0;
  for (size_t i = 1; i < bytes.size(); ++i) {
    if (bytes[i] < bytes[i - 1]) return false;
    up += bytes[i] > bytes[i - 1] ? 1 : 0;
  }
  return 5 * up >= 4 * (bytes.size() - 1) && bytes.back() - bytes.front() >= kLeast;
}

}  // namespace

std::vector<size_t> ends_of_steps(const Snapshot& snapshot, int device, StackReader& reader) {
  std::vector<size_t> ends = ends_by_annotations(snapshot, device);
  return ends.size() >= kWarmUp + kFewest ? ends : ends_by_frames(snapshot, device, reader);
}

Growth growth_of(const Snapshot& snapshot, int device, StackReader& reader) {
  std::vector<size_t> ends = ends_of_steps(snapshot, device, reader);
  Growth growth{.steps = static_cast<int64_t>(ends.size()), .active_a_step = {}, .list = {}};
  if (ends.size() < kWarmUp + kFewest) return growth;
  ends.erase(ends.begin(), ends.begin() + kWarmUp);
  const auto steps = static_cast<int64_t>(ends.size()) - 1;
  const std::vector<size_t> compared = spread(ends);
  Replay replay(snapshot, device);
  std::map<StackId, std::vector<int64_t>> by_stack;
  std::vector<int64_t> active;
  for (size_t i = 0; i < compared.size(); ++i) {
    replay.advance_to(compared[i]);
    active.push_back(replay.totals().active_bytes);
    for (const LiveStack& live : live_by_stack(replay)) {
      if (live.older) continue;
      by_stack[live.stack].resize(compared.size());
      by_stack[live.stack][i] += live.bytes;
    }
  }
  if (grows(active)) growth.active_a_step = (active.back() - active.front()) / steps;
  for (const auto& [stack, bytes] : by_stack) {
    if (!grows(bytes)) continue;
    const StackReading& reading = reader.read(stack);
    const int64_t grown = bytes.back() - bytes.front();
    growth.list.push_back({reading.holding, reading.own ? reading.own : reading.caller, stack, grown / steps, grown});
  }
  std::ranges::stable_sort(growth.list, [](const Growing& a, const Growing& b) { return a.bytes > b.bytes; });
  return growth;
}

}  // namespace snug
