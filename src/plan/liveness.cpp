#include "plan/liveness.h"

#include <algorithm>
#include <numeric>

#include "plan/events.h"

namespace snug {

namespace {

class Folding {
 public:
  Folding(const Program& program, const Events& events) : program_(program), events_(events) {}

  Timeline run() {
    timeline_.stages.reserve(events_.points.size());
    for (const Point& point : events_.points) timeline_.stages.push_back(stage_of(point));
    for (size_t i = 0; i < program_.storages.size(); ++i) {
      const Storage& storage = program_.storages[i];
      if (storage.lifetime == Lifetime::run) {
        int64_t& sum = timeline_.run_bytes[static_cast<size_t>(storage.home)];
        sum = align_up(sum, alignment_of(storage));
        sum = checked_add(sum, checked_mul(align_up(storage.bytes, alignment_of(storage)), storage.instances));
        continue;
      }
      for (int64_t instance = 0; instance < storage.instances; ++instance)
        if (events_.spans[i][static_cast<size_t>(instance)].used()) add(life(static_cast<StorageId>(i), instance));
    }
    return std::move(timeline_);
  }

 private:
  // Of a loop over layers, whatever stands in it.
  Stage stage_of(const Point& point) const {
    const RegionNode& node = events_.node(point.node);
    return (node.layer_loop == kNone ? node : events_.node(node.layer_loop)).region->stage;
  }

  bool repeats(int32_t loop) const { return loop != kNone && events_.node(loop).region->count > 1; }

  // Where an event begins to occupy the folded timeline: a value born in an early iteration is alive throughout the loop.
  int32_t birth(const OpEvent& e) const {
    const int32_t loop = events_.layer_loop_of(e);
    if (loop == kNone) return e.point;
    return e.iteration + 1 == events_.node(loop).region->count ? e.point : events_.node(loop).begin;
  }
  int32_t death(const OpEvent& e) const {
    const int32_t loop = events_.layer_loop_of(e);
    if (loop == kNone) return e.point;
    return e.iteration == 0 ? e.point : events_.node(loop).end - 1;
  }

  Life life(StorageId id, int64_t instance) const {
    const Storage& storage = program_.storage(id);
    const Span& span = events_.spans[static_cast<size_t>(id)][static_cast<size_t>(instance)];
    const OpEvent &first = events_.event(span.first), &last = events_.event(span.last);
    const int32_t first_loop = events_.layer_loop_of(first), last_loop = events_.layer_loop_of(last);
    Life life{.storage = id,
              .first_instance = instance,
              .bytes = align_up(storage.bytes, alignment_of(storage)),
              .alignment = alignment_of(storage),
              .home = storage.home};
    if (first_loop == last_loop && first.iteration == last.iteration && (storage.instances > 1 || span.one_loop)) {
      life.birth = first.point;  // within one iteration (of every iteration, if it has one instance)
      life.death = last.point;
    } else if (storage.instances > 1) {
      life.birth = birth(first);
      life.death = death(last);
    } else {
      // One instance used across a loop's border: alive in all of the loop's iterations.
      life.birth = repeats(first_loop) ? events_.node(first_loop).begin : first.point;
      life.death = repeats(last_loop) ? events_.node(last_loop).end - 1 : last.point;
    }
    if (span.held_from >= 0) life.birth = std::min(life.birth, span.held_from);
    life.death = std::max(life.death, span.held_until);
    return life;
  }

  // Instances with equal lives stay one object.
  void add(const Life& next) {
    if (!timeline_.lives.empty()) {
      Life& previous = timeline_.lives.back();
      if (previous.storage == next.storage && previous.first_instance + previous.count == next.first_instance &&
          previous.birth == next.birth && previous.death == next.death) {
        ++previous.count;
        previous.bytes = checked_add(previous.bytes, next.bytes);
        return;
      }
    }
    timeline_.lives.push_back(next);
  }

  const Program& program_;
  const Events& events_;
  Timeline timeline_;
};

}  // namespace

Timeline live_ranges(const Program& program) { return Folding(program, events_of(program)).run(); }

std::vector<int64_t> live_bytes(const Timeline& timeline, Home home, int64_t between) {
  std::vector<int64_t> live(timeline.stages.size() + 1);
  for (const Life& life : timeline.lives) {
    if (life.home != home) continue;
    const int64_t bytes = checked_add(life.bytes, checked_mul(life.count, between));
    live[static_cast<size_t>(life.birth)] += bytes;
    live[static_cast<size_t>(life.death) + 1] -= bytes;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  live.pop_back();
  return live;
}

int64_t peak_live_bytes(const Timeline& timeline, Home home) {
  const std::vector<int64_t> live = live_bytes(timeline, home);
  return live.empty() ? 0 : *std::max_element(live.begin(), live.end());
}

}  // namespace snug
