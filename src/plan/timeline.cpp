#include "plan/timeline.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "plan/events.h"

namespace snug {

namespace {

constexpr int64_t kMostLayersShown = 512;  // of one loop; the outermost are kept

// When an event is to be seen: the step it is, or for one that is not shown the next step that is, and the one before.
struct Seen {
  int32_t birth = 0, death = 0;
};

class Unfolding {
 public:
  Unfolding(const Program& program, const Layout& layout)
      : program_(program), layout_(layout), events_(events_of(program)), seen_(events_.events.size()) {
    timeline_.program = &program;
    find_loops();
    at_home_.resize(events_.nodes.size());
    for (size_t i = 0; i < program.storages.size(); ++i)
      if (program.storages[i].lifetime == Lifetime::computed && events_.homes[i] != kNone)
        at_home_[static_cast<size_t>(events_.homes[i])].push_back(static_cast<StorageId>(i));
  }

  MemoryTimeline run() {
    visit(0, kNone, true);
    std::sort(timeline_.lives.begin(), timeline_.lives.end(), [](const TimelineLife& a, const TimelineLife& b) {
      return std::tie(a.birth, a.storage, a.instance) < std::tie(b.birth, b.storage, b.instance);
    });
    add_up();
    return std::move(timeline_);
  }

 private:
  // The first event of each point: those of a loop over layers follow each other by iterations.
  void find_loops() {
    first_event_.assign(events_.points.size(), -1);
    for (size_t i = 0; i < events_.events.size(); ++i)
      if (int32_t& first = first_event_[static_cast<size_t>(events_.events[i].point)]; first < 0)
        first = static_cast<int32_t>(i);
  }

  int32_t event_of(int32_t point, int64_t iteration) const {
    const int32_t loop = events_.node(events_.point(point).node).layer_loop;
    const int32_t length = loop == kNone ? 0 : events_.node(loop).end - events_.node(loop).begin;
    return first_event_[static_cast<size_t>(point)] + static_cast<int32_t>(iteration) * length;
  }

  static bool is_shown(const Region& region, int64_t iteration) {
    if (region.axis == Axis::layer)
      return region.count <= kMostLayersShown || iteration < kMostLayersShown / 2 ||
             iteration >= region.count - kMostLayersShown / 2;
    return iteration == 0 || iteration + 1 == region.count;
  }

  int32_t now() const { return static_cast<int32_t>(timeline_.steps.size()); }

  // The node after the region's.
  int32_t visit(int32_t node, int32_t parent, bool shown) {
    const Region& region = *events_.node(node).region;
    int32_t next = node + 1;
    for (int64_t iteration = 0; iteration < region.count; ++iteration) {
      const bool seen = shown && is_shown(region, iteration);
      if (region.axis != Axis::layer && !is_shown(region, iteration)) {  // the same storages once more
        iteration = std::max(iteration, region.count - 2);
        timeline_.hidden_steps += (region.count - 2) * ops_below(region);
        continue;
      }
      if (region.axis == Axis::layer) {
        iteration_ = iteration;
        layer_ = region.layer_of(iteration);
      }
      const auto group = static_cast<int32_t>(timeline_.groups.size());
      const int32_t begin = now();
      if (seen)
        timeline_.groups.push_back({&region, iteration, region.axis == Axis::layer ? layer_ : -1, parent, begin, begin - 1});
      next = visit_body(node, seen ? group : parent, seen);
      if (seen) timeline_.groups[static_cast<size_t>(group)].last_step = now() - 1;
      for (const StorageId storage : at_home_[static_cast<size_t>(node)]) close(storage, node, begin);
    }
    if (region.axis == Axis::layer) iteration_ = layer_ = 0;
    return next;
  }

  int32_t visit_body(int32_t node, int32_t group, bool seen) {
    int32_t next = node + 1, point = events_.node(node).begin;
    for (const Item& item : events_.node(node).region->items) {
      if (item.op() != nullptr) run(point++, group, seen);
      if (item.region() == nullptr) continue;
      point = events_.node(next).end;
      next = visit(next, group, seen);
    }
    return next;
  }

  static int64_t ops_below(const Region& region) {
    int64_t sum = 0;
    for (const Item& item : region.items) sum += item.op() != nullptr ? 1 : ops_below(*item.region()) * item.region()->count;
    return sum;
  }

  void run(int32_t point, int32_t group, bool seen) {
    seen_[static_cast<size_t>(event_of(point, iteration_))].push_back({now(), seen ? now() : now() - 1});
    if (seen) {
      timeline_.steps.push_back({events_.point(point).op, point, group, layer_});
    } else {
      ++timeline_.hidden_steps;
    }
  }

  // ---- A storage lives from its first to its last use in one run of its home's body, which began at step `begin`.

  void close(StorageId storage, int32_t home, int32_t begin) {
    const std::vector<Span>& spans = events_.spans[static_cast<size_t>(storage)];
    for (size_t instance = 0; instance < spans.size(); ++instance) {
      if (!spans[instance].used()) continue;
      const auto [first, last] = events_in(spans[instance], spans.size() > 1, home);
      const int32_t birth = birth_of(first, begin), death = seen_[static_cast<size_t>(last)].back().death;
      if (death < birth) continue;
      timeline_.lives.push_back({.storage = storage,
                                 .instance = static_cast<int64_t>(instance),
                                 .bytes = align_up(program_.storage(storage).bytes, kAlignment),
                                 .offset = layout_.offset_of(storage, static_cast<int64_t>(instance)),
                                 .birth = birth,
                                 .death = death});
    }
  }

  // The events between which it lives. What there is one of is used alike in every iteration of a loop: of one that its home
  // stands in the present, of one that stands in its home the first and the last.
  std::pair<int32_t, int32_t> events_in(const Span& span, bool of_layers, int32_t home) const {
    std::pair found{span.first, span.last};
    if (!of_layers) {
      found.first = event_of(events_.event(span.first).point, iteration_in(span.first, home, false));
      found.second = event_of(events_.event(span.last).point, iteration_in(span.last, home, true));
    }
    if (span.held_from < 0) return found;
    const auto held = [&](int32_t point, bool last) {
      const int32_t first = event_of(point, 0);
      return event_of(point, iteration_in(first, home, last));
    };
    return {std::min(found.first, held(span.held_from, false)), std::max(found.second, held(span.held_until, true))};
  }

  int64_t iteration_in(int32_t event, int32_t home, bool last) const {
    const int32_t loop = events_.layer_loop_of(events_.event(event));
    if (loop == kNone) return 0;
    if (events_.node(home).layer_loop == loop) return iteration_;
    return last ? events_.node(loop).region->count - 1 : 0;
  }

  // Its first time since step `begin`.
  int32_t birth_of(int32_t event, int32_t begin) const {
    const std::vector<Seen>& times = seen_[static_cast<size_t>(event)];
    return std::find_if(times.begin(), times.end(), [&](const Seen& seen) { return seen.birth >= begin; })->birth;
  }

  void add_up() {
    for (const Storage& storage : program_.storages)
      if (storage.lifetime == Lifetime::run && storage.home == Home::device)
        timeline_.resident[static_cast<size_t>(storage.role)] += align_up(storage.bytes, kAlignment);
    const size_t count = timeline_.steps.size();
    timeline_.live.assign(count + 1, {});
    for (const TimelineLife& life : timeline_.lives) {
      if (program_.storage(life.storage).home != Home::device) continue;
      const auto role = static_cast<size_t>(program_.storage(life.storage).role);
      timeline_.live[static_cast<size_t>(life.birth)][role] += life.bytes;
      timeline_.live[static_cast<size_t>(life.death) + 1][role] -= life.bytes;
    }
    BytesByRole sum = timeline_.resident;
    for (size_t step = 0; step < count; ++step) {
      for (size_t role = 0; role < kRoleCount; ++role) sum[role] += timeline_.live[step][role];
      timeline_.live[step] = sum;
      if (const int64_t bytes = sum_of(sum); bytes > timeline_.peak_bytes) {
        timeline_.peak_bytes = bytes;
        timeline_.peak_step = static_cast<int32_t>(step);
      }
    }
    timeline_.live.resize(count);
  }

  const Program& program_;
  const Layout& layout_;
  const Events events_;
  MemoryTimeline timeline_;
  std::vector<std::vector<Seen>> seen_;          // by event
  std::vector<int32_t> first_event_;             // by point
  std::vector<std::vector<StorageId>> at_home_;  // by node
  int64_t iteration_ = 0, layer_ = 0;            // of the loop over layers
};

std::string in_layer(std::string name, int64_t layer) {
  const size_t hole = name.find("{}");
  return hole == std::string::npos ? name : name.replace(hole, 2, std::to_string(layer));
}

}  // namespace

MemoryTimeline unfold(const Program& program, const Layout& layout) { return Unfolding(program, layout).run(); }

std::string label_of(const Program& program, const Op& op) {
  if (run_by(op.kind) == RunBy::host) return name_of(op.kind);
  for (const Operand& operand : op.operands)
    if (operand.access != Access::read && operand.slot != Slot::workspace)
      return std::string(name_of(op.kind)) + " " + program.tensor(operand.tensor).name;
  return name_of(op.kind);
}

std::string label_of(const Program& program, const Op& op, int64_t layer) { return in_layer(label_of(program, op), layer); }

std::string label_of(const TimelineGroup& group) {
  const Region& region = *group.region;
  const std::string place = std::to_string(group.iteration + 1) + " of " + std::to_string(region.count);
  if (region.axis == Axis::layer) return "layer " + std::to_string(group.layer);
  if (region.axis == Axis::micro_batch) return "micro-batch " + place;
  if (region.axis == Axis::chunk) return region.name + " " + place;
  return region.name;
}

std::string label_of(const Storage& storage, int64_t instance) {
  std::string name = in_layer(storage.name, instance);
  if (storage.instances > 1 && name == storage.name) name += " " + std::to_string(instance);
  return name;
}

int64_t sum_of(const BytesByRole& bytes) { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }

int64_t holes_of(const Plan& plan) {
  return plan.peak_bytes - plan.runtime_bytes - plan.layout.device().run_bytes - plan.layout.device().peak_live_bytes;
}

}  // namespace snug
