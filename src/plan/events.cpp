#include "plan/events.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace snug {

namespace {

// An op on another lane that no op of the compute lane has waited for yet.
struct Pending {
  int32_t event = 0;
  int32_t node = kNone;
};

class Walk {
 public:
  explicit Walk(const Program& program) : program_(program) {
    out_.spans.resize(program.storages.size());
    out_.homes.assign(program.storages.size(), kNone);
    for (size_t i = 0; i < out_.spans.size(); ++i)
      if (program.storages[i].lifetime == Lifetime::computed)
        out_.spans[i].resize(static_cast<size_t>(program.storages[i].instances));
  }

  Events run() {
    number(program_.root, kNone);
    lift_instances();
    visit(0);
    return std::move(out_);
  }

 private:
  // ---- Once over the folded tree.

  void number(const Region& region, int32_t parent) {
    const auto id = static_cast<int32_t>(out_.nodes.size());
    RegionNode node{.region = &region, .parent = parent, .begin = static_cast<int32_t>(out_.points.size())};
    if (parent != kNone) {
      node.depth = out_.node(parent).depth + 1;
      node.layer_loop = out_.node(parent).layer_loop;
    }
    if (region.axis == Axis::layer) {
      if (node.layer_loop != kNone) throw std::logic_error("layer loops do not nest");
      node.layer_loop = id;
    }
    out_.nodes.push_back(node);
    for (const Item& item : region.items) {
      if (const Region* child = item.region()) number(*child, id);
      if (const Op* op = item.op()) number(*op, id);
    }
    out_.nodes[static_cast<size_t>(id)].end = static_cast<int32_t>(out_.points.size());
  }

  void number(const Op& op, int32_t node) {
    out_.points.push_back({&op, node});
    for (const Operand& operand : op.operands) {
      const Tensor& tensor = program_.tensor(operand.tensor);
      if (tensor.storage == kNone) throw std::logic_error(tensor.name + " has no storage");
      int32_t& home = out_.homes[static_cast<size_t>(tensor.storage)];
      home = home == kNone ? node : out_.common(home, node);
    }
  }

  // What layers keep one each of may be handed from layer to layer.
  void lift_instances() {
    for (size_t i = 0; i < out_.homes.size(); ++i)
      if (int32_t& home = out_.homes[i]; home != kNone && program_.storages[i].instances > 1)
        if (const int32_t loop = out_.node(home).layer_loop; loop != kNone) home = out_.node(loop).parent;
  }

  // ---- Once through the run. Nodes and points come in the order of their numbers.

  // The node after the region's.
  int32_t visit(int32_t id) {
    const Region& region = *out_.node(id).region;
    const bool layers = region.axis == Axis::layer;
    int32_t next = id + 1;
    for (int64_t iteration = 0; iteration < (layers ? region.count : 1); ++iteration) {
      if (layers) {
        iteration_ = iteration;
        layer_ = region.layer_of(iteration);
      }
      next = visit_body(id);
      join(id);
    }
    if (layers) iteration_ = layer_ = 0;
    return next;
  }

  int32_t visit_body(int32_t id) {
    int32_t next = id + 1, point = out_.node(id).begin;
    for (const Item& item : out_.node(id).region->items) {
      if (item.op() != nullptr) use(point++);
      if (item.region() == nullptr) continue;
      point = out_.node(next).end;
      next = visit(next);
    }
    return next;
  }

  void use(int32_t point) {
    const auto event = static_cast<int32_t>(out_.events.size());
    out_.events.push_back({point, iteration_, layer_});
    const Op& op = *out_.point(point).op;
    if (op.lane != Lane::compute) {
      pending_[static_cast<size_t>(op.lane)].push_back({event, out_.point(point).node});
    } else {
      wait(op, event);
    }
    for (const Operand& operand : op.operands)
      if (Span* span = span_of(program_.tensor(operand.tensor), layer_, out_.point(point).node)) {
        note(op, operand, *span, event);
        if (const int32_t chunks = chunk_loop_around(program_.tensor(operand.tensor).storage, out_.point(point).node);
            chunks != kNone)
          span_all(*span, event - (point - out_.node(chunks).begin), event + (out_.node(chunks).end - 1 - point));
      }
    if (op.lane != Lane::compute) hold_written({event, out_.point(point).node});
  }

  // The instance that an op sees, if its uses are counted.
  Span* span_of(const Tensor& tensor, int64_t layer, int32_t node) {
    if (program_.storage(tensor.storage).lifetime == Lifetime::run) return nullptr;
    if (tensor.instance_by_layer && out_.node(node).layer_loop == kNone)
      throw std::logic_error(tensor.name + " is used outside its layers");
    return &out_.spans[static_cast<size_t>(tensor.storage)].at(static_cast<size_t>(instance_of(tensor, layer)));
  }

  static int64_t instance_of(const Tensor& tensor, int64_t layer) {
    return tensor.instance + (tensor.instance_by_layer ? layer : 0);
  }

  void note(const Op& op, const Operand& operand, Span& span, int32_t event) {
    const Tensor& tensor = program_.tensor(operand.tensor);
    if (!span.used()) {
      if (operand.access != Access::write)
        throw std::logic_error(std::string(name_of(op.kind)) + " reads " + tensor.name + " before it is written");
      span.first = span.last = event;
      return;
    }
    if (iteration_ > 0 && program_.storage(tensor.storage).instances == 1) return;
    extend(span, event);
  }

  void extend(Span& span, int32_t event) {
    span.one_loop = span.one_loop && out_.layer_loop_of(out_.event(event)) == out_.layer_loop_of(out_.event(span.first));
    span.last = std::max(span.last, event);
  }

  // The loop over chunks that uses the storage, and is not all that does; kNone: none.
  int32_t chunk_loop_around(StorageId storage, int32_t node) const {
    for (; node != kNone && node != out_.homes[static_cast<size_t>(storage)]; node = out_.node(node).parent)
      if (out_.node(node).region->axis == Axis::chunk && out_.node(node).region->count > 1) return node;
    return kNone;
  }

  // Of a loop that is taken once, all of it: the next chunk finds what the last one left.
  void span_all(Span& span, int32_t first, int32_t last) const {
    if (iteration_ > 0 && span.last < first) return;  // there is one instance, and these are the first iteration's events
    span.first = std::min(span.first, first);
    span.last = std::max(span.last, last);
  }

  // ---- Lanes.

  // Before it runs, an op of the compute lane waits for the ops of others that it meets in a storage, and with them for all
  // that came before on their lanes.
  void wait(const Op& op, int32_t event) {
    for (std::vector<Pending>& lane : pending_) {
      size_t done = 0;
      for (size_t i = 0; i < lane.size(); ++i)
        if (meets(op, layer_, out_.event(lane[i].event))) done = i + 1;
      for (size_t i = 0; i < done; ++i) release(lane[i], event);
      lane.erase(lane.begin(), lane.begin() + static_cast<int64_t>(done));
    }
  }

  // One of them writes what both use.
  bool meets(const Op& op, int64_t layer, const OpEvent& beside) const {
    for (const Operand& theirs : out_.point(beside.point).op->operands)
      for (const Operand& ours : op.operands) {
        const Tensor &a = program_.tensor(theirs.tensor), &b = program_.tensor(ours.tensor);
        if (a.storage != b.storage || instance_of(a, beside.layer) != instance_of(b, layer)) continue;
        if (theirs.access != Access::read || ours.access != Access::read) return true;
      }
    return false;
  }

  // What it touched is used until `event`.
  void release(const Pending& pending, int32_t event) {
    const bool other_iteration =
        iteration_ > 0 && out_.layer_loop_of(out_.event(pending.event)) == out_.layer_loop_of(out_.event(event));
    for_each_span(pending, [&](const Operand& operand, Span& span) {
      const Storage& storage = program_.storage(program_.tensor(operand.tensor).storage);
      if (!other_iteration || storage.instances > 1) extend(span, event);
    });
  }

  // The end of a body: what was begun there and not waited for is at work as long as the loop goes on.
  void join(int32_t id) {
    const RegionNode& region = out_.node(id);
    const int32_t from = is_loop(region) ? region.begin : region.end - 1;
    for (std::vector<Pending>& lane : pending_) {
      const auto here = std::stable_partition(lane.begin(), lane.end(), [&](const Pending& p) { return p.node != id; });
      for (auto pending = here; pending != lane.end(); ++pending)
        for_each_span(*pending, [&](const Operand& operand, Span& span) { hold(operand, span, id, from, region.end - 1); });
      lane.erase(here, lane.end());
    }
  }

  // What another lane writes it may begin to write as early as lanes met; in a loop, while the body before is still at work.
  void hold_written(const Pending& pending) {
    const RegionNode& region = out_.node(pending.node);
    for_each_span(pending, [&](const Operand& operand, Span& span) {
      if (operand.access != Access::read)
        hold(operand, span, pending.node, region.begin, is_loop(region) ? region.end - 1 : region.begin);
    });
  }

  static bool is_loop(const RegionNode& node) { return node.region->axis != Axis::none; }

  void hold(const Operand& operand, Span& span, int32_t id, int32_t from, int32_t until) {
    const RegionNode& region = out_.node(id);
    span.held_from = span.held_from < 0 ? from : std::min(span.held_from, from);
    span.held_until = std::max(span.held_until, until);
    int32_t& home = out_.homes[static_cast<size_t>(program_.tensor(operand.tensor).storage)];
    home = out_.common(home, is_loop(region) && region.parent != kNone ? region.parent : id);
  }

  template <class Visit>
  void for_each_span(const Pending& pending, Visit&& visit) {
    const OpEvent& event = out_.event(pending.event);
    for (const Operand& operand : out_.point(event.point).op->operands)
      if (Span* span = span_of(program_.tensor(operand.tensor), event.layer, pending.node)) visit(operand, *span);
  }

  const Program& program_;
  Events out_;
  std::array<std::vector<Pending>, kLaneCount> pending_;
  int64_t iteration_ = 0, layer_ = 0;
};

}  // namespace

int32_t Events::common(int32_t a, int32_t b) const {
  while (a != b) (node(a).depth >= node(b).depth ? a : b) = node(a).depth >= node(b).depth ? node(a).parent : node(b).parent;
  return a;
}

Events events_of(const Program& program) { return Walk(program).run(); }

}  // namespace snug
