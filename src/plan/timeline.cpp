#include "plan/timeline.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace snug {

namespace {

constexpr int64_t kMostLayersShown = 512;  // of one loop; the outermost are kept

// A region of the tree, once, whatever it repeats.
struct Node {
  const Region* region = nullptr;
  int32_t parent = kNone;
  int32_t depth = 0;
  int32_t layer_loop = kNone;  // the loop over layers that it lies in, or is
  int64_t entered = 0;         // how often its body has begun
};

// What an instance of a storage has lived through so far.
struct Open {
  int32_t first = -1, last = -1;
  int64_t entered = -1;  // the body of its home that this belongs to
};

class Unfolding {
 public:
  Unfolding(const Program& program, const Layout& layout) : program_(program), layout_(layout) {
    timeline_.program = &program;
    open_.resize(program.storages.size());
    home_.assign(program.storages.size(), kNone);
    number(program.root, kNone);
    lift_instances();
  }

  MemoryTimeline run() {
    for (size_t i = 0; i < open_.size(); ++i) open_[i].resize(static_cast<size_t>(program_.storages[i].instances));
    visit(program_.root, kNone, true);
    for (size_t i = 0; i < open_.size(); ++i)
      for (size_t instance = 0; instance < open_[i].size(); ++instance)
        close(static_cast<StorageId>(i), static_cast<int64_t>(instance));
    std::sort(timeline_.lives.begin(), timeline_.lives.end(), [](const TimelineLife& a, const TimelineLife& b) {
      return std::tie(a.birth, a.storage, a.instance) < std::tie(b.birth, b.storage, b.instance);
    });
    add_up();
    return std::move(timeline_);
  }

 private:
  // ---- Once over the folded tree: points of time, and each storage's home: the smallest region whose body has all its
  // uses. A storage lives from its first to its last use in one run of that body.

  void number(const Region& region, int32_t parent) {
    const auto id = static_cast<int32_t>(nodes_.size());
    Node node{.region = &region, .parent = parent};
    if (parent != kNone) {
      node.depth = at(parent).depth + 1;
      node.layer_loop = at(parent).layer_loop;
    }
    if (region.axis == Axis::layer) node.layer_loop = id;
    nodes_.push_back(node);
    node_of_[&region] = id;
    for (const Item& item : region.items) {
      if (const Region* child = item.region()) number(*child, id);
      if (const Op* op = item.op()) {
        point_of_[op] = static_cast<int32_t>(point_of_.size());
        for (const Operand& operand : op->operands) {
          const StorageId storage = program_.tensor(operand.tensor).storage;
          int32_t& home = home_[static_cast<size_t>(storage)];
          home = home == kNone ? id : common(home, id);
        }
      }
    }
  }

  int32_t common(int32_t a, int32_t b) const {
    while (a != b) (at(a).depth >= at(b).depth ? a : b) = at(a).depth >= at(b).depth ? at(a).parent : at(b).parent;
    return a;
  }

  // What layers keep one each of may be handed from layer to layer.
  void lift_instances() {
    for (size_t i = 0; i < home_.size(); ++i)
      if (home_[i] != kNone && program_.storages[i].instances > 1 && at(home_[i]).layer_loop != kNone)
        home_[i] = at(at(home_[i]).layer_loop).parent;
  }

  // ---- Once through the run.

  using Touched = std::vector<std::pair<StorageId, int64_t>>;

  static bool is_shown(const Region& region, int64_t iteration) {
    if (region.axis == Axis::layer)
      return region.count <= kMostLayersShown || iteration < kMostLayersShown / 2 ||
             iteration >= region.count - kMostLayersShown / 2;
    return iteration == 0 || iteration + 1 == region.count;
  }

  int32_t now() const { return static_cast<int32_t>(timeline_.steps.size()); }

  void visit(const Region& region, int32_t parent, bool shown) {
    const int32_t node = node_of_.at(&region);
    Touched beside;
    for (int64_t iteration = 0; iteration < region.count; ++iteration) {
      const bool seen = shown && is_shown(region, iteration);
      if (region.axis != Axis::layer && !is_shown(region, iteration)) {  // the same storages once more
        iteration = std::max(iteration, region.count - 2);
        timeline_.hidden_steps += (region.count - 2) * ops_below(region);
        continue;
      }
      if (region.axis == Axis::layer) layer_ = region.layer_of(iteration);
      ++nodes_[static_cast<size_t>(node)].entered;
      const auto group = static_cast<int32_t>(timeline_.groups.size());
      if (seen)
        timeline_.groups.push_back({&region, iteration, region.axis == Axis::layer ? layer_ : -1, parent, now(), now() - 1});
      for (const Item& item : region.items) {
        if (const Region* child = item.region()) visit(*child, seen ? group : parent, seen);
        if (const Op* op = item.op()) run(*op, group, seen, beside);
      }
      if (seen) timeline_.groups[static_cast<size_t>(group)].last_step = now() - 1;
      join(beside, node);
    }
    join(beside, kNone);
    if (region.axis == Axis::layer) layer_ = 0;
  }

  static int64_t ops_below(const Region& region) {
    int64_t sum = 0;
    for (const Item& item : region.items) sum += item.op() != nullptr ? 1 : ops_below(*item.region()) * item.region()->count;
    return sum;
  }

  void run(const Op& op, int32_t group, bool seen, Touched& beside) {
    for (const Operand& operand : op.operands) {
      const Tensor& tensor = program_.tensor(operand.tensor);
      if (program_.storage(tensor.storage).lifetime == Lifetime::run) continue;
      const int64_t instance = tensor.instance + (tensor.instance_by_layer ? layer_ : 0);
      use(tensor.storage, instance, seen);
      if (op.lane != Lane::compute) beside.emplace_back(tensor.storage, instance);
    }
    if (seen) {
      timeline_.steps.push_back({&op, point_of_.at(&op), group, layer_});
    } else {
      ++timeline_.hidden_steps;
    }
  }

  // In a layer that is not shown a birth is seen at the next step that is, and a death at the one before.
  void use(StorageId storage, int64_t instance, bool seen) {
    Open& open = open_[static_cast<size_t>(storage)].at(static_cast<size_t>(instance));
    const int64_t entered = at(home_[static_cast<size_t>(storage)]).entered;
    if (open.entered != entered) {
      close(storage, instance);
      open = {.first = now(), .last = -1, .entered = entered};
    }
    open.last = std::max(open.last, seen ? now() : now() - 1);
  }

  void close(StorageId storage, int64_t instance) {
    const Open& open = open_[static_cast<size_t>(storage)][static_cast<size_t>(instance)];
    if (open.entered < 0 || open.last < open.first) return;
    timeline_.lives.push_back({.storage = storage,
                               .instance = instance,
                               .bytes = align_up(program_.storage(storage).bytes, kAlignment),
                               .offset = layout_.offset_of(storage, instance),
                               .birth = open.first,
                               .death = open.last});
  }

  // The end of a body (or, with kNone, of the last) is where lanes meet: what ran beside compute keeps its storages until
  // then; what the body itself is home to until its end, the rest until the loop's.
  void join(const Touched& beside, int32_t body) {
    for (const auto& [storage, instance] : beside) {
      Open& open = open_[static_cast<size_t>(storage)][static_cast<size_t>(instance)];
      const int32_t home = home_[static_cast<size_t>(storage)];
      if (body != kNone && common(home, body) != body) continue;
      if (body == kNone || at(home).entered == open.entered) open.last = std::max(open.last, now() - 1);
    }
  }

  void add_up() {
    for (const Storage& storage : program_.storages)
      if (storage.lifetime == Lifetime::run && storage.home == Home::device)
        timeline_.resident[static_cast<size_t>(storage.role)] += align_up(storage.bytes, kAlignment);
    const size_t count = timeline_.steps.size();
    timeline_.live.assign(count + 1, {});
    for (const TimelineLife& life : timeline_.lives) {
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

  const Node& at(int32_t node) const { return nodes_[static_cast<size_t>(node)]; }

  const Program& program_;
  const Layout& layout_;
  MemoryTimeline timeline_;
  std::vector<Node> nodes_;
  std::map<const Region*, int32_t> node_of_;
  std::map<const Op*, int32_t> point_of_;
  std::vector<int32_t> home_;            // by storage: index of a node
  std::vector<std::vector<Open>> open_;  // by storage, by instance
  int64_t layer_ = 0;
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
