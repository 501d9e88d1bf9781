#include "explain/phases.h"

#include <algorithm>
#include <unordered_map>

namespace snug {

namespace {

// Starts and ends of the device, in order of time.
std::vector<Annotation> annotations_of(const Snapshot& snapshot, int device) {
  std::vector<Annotation> all;
  for (const Annotation& a : snapshot.annotations)
    if (a.device == device || a.device < 0) all.push_back(a);
  std::ranges::stable_sort(all, [](const Annotation& a, const Annotation& b) { return a.time_us < b.time_us; });
  return all;
}

}  // namespace

std::vector<Phase> phases_of(const Snapshot& snapshot, int device) {
  const size_t events = snapshot.event_count(device);
  if (events == 0 || snapshot.event(device, 0).time_us == 0) return {};
  const int64_t last_us = snapshot.event(device, events - 1).time_us;
  std::vector<Phase> phases;
  std::unordered_map<TextId, std::vector<size_t>> open;  // those begun and not ended
  size_t next = 0;
  for (const Annotation& a : annotations_of(snapshot, device)) {
    while (next < events && snapshot.event(device, next).time_us < a.time_us) ++next;
    std::vector<size_t>& begun = open[a.name];
    if (a.start) {
      begun.push_back(phases.size());
      phases.push_back({a.name, a.time_us, std::max(a.time_us, last_us), next, events});
    } else if (!begun.empty()) {
      phases[begun.back()].end_us = a.time_us;
      phases[begun.back()].end = next;
      begun.pop_back();
    }
  }
  return phases;
}

}  // namespace snug
