#include "explain/course.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "explain/scaled_round.h"

namespace snug {

namespace {

// The same place in every round: the stack of the moment, and how often it has come before in the round.
struct Place {
  StackId stack = 0;
  size_t times = 0;
};

Place place_of(const Snapshot& snapshot, int device, size_t begin, size_t moment) {
  Place place{snapshot.event(device, moment).stack, 0};
  for (size_t i = begin; i < moment; ++i) {
    const Event& event = snapshot.event(device, i);
    place.times += event.action == Action::alloc && event.stack == place.stack ? 1 : 0;
  }
  return place;
}

class Walk {
 public:
  Walk(const Snapshot& snapshot, int device, const std::vector<size_t>& begins, size_t moment)
      : snapshot_(snapshot), device_(device), replay_(snapshot, device) {
    for (size_t i = 0; i < begins.size(); ++i)
      rounds_.push_back({.begin = begins[i], .end = i + 1 < begins.size() ? begins[i + 1] : moment});
    place_ = place_of(snapshot, device, begins.back(), moment);
  }

  std::vector<Round> go() {
    for (Round& round : rounds_) go(round, &round == &rounds_.back());
    return std::move(rounds_);
  }

 private:
  void go(Round& round, bool last) {
    replay_.advance_to(round.begin);
    round.begin_bytes = round.peak_bytes = replay_.totals().active_bytes;
    size_t times = 0;
    int64_t most = 0;
    for (size_t i = round.begin; i < round.end; ++i) {
      const Event& event = snapshot_.event(device_, i);
      if (event.action == Action::alloc && !round.matched) {
        if (event.stack == place_.stack && times++ == place_.times) {
          round.matched = true;
          round.there = i;
          round.there_bytes = most = replay_.totals().active_bytes;
        } else {
          round.requested_bytes = checked_add(round.requested_bytes, event.bytes);
        }
      }
      replay_.next();
      round.peak_bytes = std::max(round.peak_bytes, replay_.totals().active_bytes);
      most = std::max(most, replay_.totals().active_bytes);
    }
    if (last) round.there = round.end;
    if (last) round.there_bytes = replay_.totals().active_bytes;
    round.matched = round.matched || last;
    round.further_bytes = std::max<int64_t>(most - round.there_bytes, 0);
  }

  const Snapshot& snapshot_;
  const int device_;
  Replay replay_;
  Place place_;
  std::vector<Round> rounds_;
};

// A size that was reckoned: not below 0, and bounded, for sizes come from a file that anyone may have written.
int64_t bytes_of(double reckoned) {
  constexpr double kMost = 0x1p62;
  return static_cast<int64_t>(std::clamp(reckoned, 0.0, kMost));
}

constexpr double kSame = 0.02;  // sizes that differ by less are the same

bool is_same(int64_t a, int64_t b) {
  return std::abs(static_cast<double>(a - b)) <= kSame * static_cast<double>(std::max(a, b));
}

// From rounds that ended: of the same size as they were; of another size event by event, or along the line through the two
// nearest.
std::optional<int64_t> further_of(const Snapshot& snapshot, int device, const std::vector<Round>& rounds) {
  const Round& now = rounds.back();
  std::vector<const Round*> known;
  // The first round makes what later ones have: it is asked only if there is no other.
  for (size_t i = rounds.size() > 2 ? 1 : 0; i + 1 < rounds.size(); ++i)
    if (rounds[i].matched && rounds[i].requested_bytes > 0) known.push_back(&rounds[i]);
  if (known.empty()) return std::nullopt;
  std::optional<int64_t> most;
  for (const Round* round : known)
    if (is_same(round->requested_bytes, now.requested_bytes)) most = std::max(most.value_or(0), round->further_bytes);
  if (most) return most;
  const auto distance = [&](const Round* r) { return std::llabs(r->requested_bytes - now.requested_bytes); };
  std::ranges::stable_sort(known, [&](const Round* a, const Round* b) { return distance(a) < distance(b); });
  const Round& near = *known.front();
  const auto other =
      std::ranges::find_if(known, [&](const Round* r) { return !is_same(r->requested_bytes, near.requested_bytes); });
  const auto x = static_cast<double>(now.requested_bytes), x0 = static_cast<double>(near.requested_bytes),
             y0 = static_cast<double>(near.further_bytes);
  const auto events = [](const Round& round) { return RoundEvents{round.begin, round.there, round.end}; };
  const Round& third = other == known.end() ? near : **other;
  if (const auto scaled = further_by_scaling(snapshot, device, events(now), events(near), events(third))) return scaled;
  if (other == known.end()) return bytes_of(y0 * x / x0);
  const double slope =
      (static_cast<double>((*other)->further_bytes) - y0) / (static_cast<double>((*other)->requested_bytes) - x0);
  return bytes_of(y0 + slope * (x - x0));
}

double ratio_of(const std::vector<Round>& rounds) {
  int64_t most = 0;
  for (size_t i = 0; i + 1 < rounds.size(); ++i)
    if (rounds[i].matched) most = std::max(most, rounds[i].requested_bytes);
  return most > 0 ? static_cast<double>(rounds.back().requested_bytes) / static_cast<double>(most) : 1;
}

bool lengthens(const std::vector<Round>& rounds) {
  constexpr size_t kFewest = 4;
  std::vector<int64_t> sizes;
  for (const Round& round : rounds)
    if (round.matched) sizes.push_back(round.requested_bytes);
  // Of two rounds nothing is known but that the second is longer; a batch twice as long stands out.
  if (sizes.size() == 2) return sizes.back() < 2 * sizes.front();
  if (sizes.size() < kFewest) return false;
  const auto first = sizes.end() - static_cast<ptrdiff_t>(std::min<size_t>(sizes.size(), 6));
  return std::adjacent_find(first, sizes.end(), [](int64_t a, int64_t b) { return b <= a; }) == sizes.end();
}

}  // namespace

Course course_of(const Snapshot& snapshot, int device, const std::vector<size_t>& begins, size_t moment) {
  Course course;
  if (begins.empty() || moment >= snapshot.event_count(device)) return course;
  course.rounds = Walk(snapshot, device, begins, moment).go();
  course.further_bytes = further_of(snapshot, device, course.rounds);
  course.size_ratio = ratio_of(course.rounds);
  course.lengthening = lengthens(course.rounds);
  return course;
}

}  // namespace snug
