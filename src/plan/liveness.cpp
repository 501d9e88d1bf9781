#include "plan/liveness.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace snug {

namespace {

// A moment of the unfolded run, and the loop it lies in.
struct Moment {
  int32_t loop = -1;      // index of the innermost layer loop, -1: none
  int64_t iteration = 0;  // of that loop
  int32_t time = 0;       // on the folded timeline
};

struct Loop {
  int32_t begin = 0, end = 0;  // folded times [begin, end)
  int64_t count = 1;
};

struct Use {
  Moment first, last;
  bool used = false;
  bool one_body = true;       // every use lies in one body
  int32_t beside_until = -1;  // used on a lane that runs beside compute: alive to the end of that region
};
using Touched = std::vector<Use*>;

class Walk {
 public:
  explicit Walk(const Program& program) : program_(program) {
    uses_.resize(program.storages.size());
    for (size_t i = 0; i < uses_.size(); ++i) uses_[i].resize(static_cast<size_t>(program.storages[i].instances));
  }

  Timeline run() {
    visit(program_.root);
    collect();
    return std::move(timeline_);
  }

 private:
  void visit(const Region& region) {
    if (region.axis == Axis::layer) return visit_loop(region);
    Touched beside;
    for (const Item& item : region.items) {
      if (const Region* child = item.region()) visit(*child);
      if (const Op* op = item.op()) use(*op, append(region), beside);
    }
    join(beside);
  }

  void visit_loop(const Region& loop) {
    const auto begin = static_cast<int32_t>(timeline_.stages.size());
    std::vector<const Op*> ops;
    for_each_op(loop, [&](const Op& op, const Region& region) {
      if (&region != &loop && region.axis != Axis::chunk) throw std::logic_error("layer loops do not nest");
      ops.push_back(&op);
      append(loop);
    });
    loops_.push_back({begin, static_cast<int32_t>(timeline_.stages.size()), loop.count});
    loop_ = static_cast<int32_t>(loops_.size()) - 1;
    Touched beside;
    for (iteration_ = 0; iteration_ < loop.count; ++iteration_) {
      layer_ = loop.layer_of(iteration_);
      int32_t time = begin;
      for (const Op* op : ops) use(*op, time++, beside);
    }
    join(beside);
    loop_ = -1;
    iteration_ = 0;
  }

  int32_t append(const Region& region) {
    timeline_.stages.push_back(region.stage);
    return static_cast<int32_t>(timeline_.stages.size()) - 1;
  }

  void use(const Op& op, int32_t time, Touched& beside) {
    for (const Operand& operand : op.operands) {
      const Tensor& tensor = program_.tensor(operand.tensor);
      if (tensor.storage == kNone) throw std::logic_error(tensor.name + " has no storage");
      if (program_.storage(tensor.storage).lifetime == Lifetime::run) continue;
      if (tensor.instance_by_layer && loop_ == -1) throw std::logic_error(tensor.name + " is used outside its layers");
      const int64_t instance = tensor.instance + (tensor.instance_by_layer ? layer_ : 0);
      // What has one instance is used alike in every iteration.
      const bool every = program_.storage(tensor.storage).instances == 1;
      if (every && iteration_ > 0) continue;
      Use& used = uses_[static_cast<size_t>(tensor.storage)].at(static_cast<size_t>(instance));
      note(op, operand, tensor, used, {loop_, iteration_, time});
      if (op.lane != Lane::compute) beside.push_back(&used);
    }
  }

  // The end of a region is where its lanes meet again: what another lane used is alive until then.
  void join(const Touched& beside) {
    for (Use* used : beside)
      used->beside_until = std::max(used->beside_until, static_cast<int32_t>(timeline_.stages.size()) - 1);
  }

  static bool before(const Moment& a, const Moment& b) {
    if (a.loop == b.loop && a.iteration != b.iteration) return a.iteration < b.iteration;
    return a.time < b.time;
  }

  void note(const Op& op, const Operand& operand, const Tensor& tensor, Use& use, const Moment& moment) {
    if (!use.used) {
      if (operand.access != Access::write)
        throw std::logic_error(std::string(name_of(op.kind)) + " reads " + tensor.name + " before it is written");
      use.used = true;
      use.first = use.last = moment;
      return;
    }
    use.one_body = use.one_body && moment.loop == use.first.loop;
    if (before(moment, use.first)) use.first = moment;
    if (before(use.last, moment)) use.last = moment;
  }

  // Where a moment begins to occupy the folded timeline: a value born in an early iteration is alive throughout the loop.
  int32_t birth(const Moment& m) const {
    if (m.loop == -1) return m.time;
    const Loop& loop = loops_[static_cast<size_t>(m.loop)];
    return m.iteration + 1 == loop.count ? m.time : loop.begin;
  }
  int32_t death(const Moment& m) const {
    if (m.loop == -1) return m.time;
    const Loop& loop = loops_[static_cast<size_t>(m.loop)];
    return m.iteration == 0 ? m.time : loop.end - 1;
  }

  Life life(StorageId id, int64_t instance) const {
    const Storage& storage = program_.storage(id);
    const Use& use = uses_[static_cast<size_t>(id)][static_cast<size_t>(instance)];
    Life life{.storage = id,
              .first_instance = instance,
              .bytes = align_up(storage.bytes, alignment_of(storage.home)),
              .home = storage.home};
    if (use.first.loop == use.last.loop && use.first.iteration == use.last.iteration &&
        (storage.instances > 1 || use.one_body)) {
      life.birth = use.first.time;  // within one iteration (of every iteration, if it has one instance)
      life.death = use.last.time;
    } else if (storage.instances > 1) {
      life.birth = birth(use.first);
      life.death = death(use.last);
    } else {
      // One instance used across a loop's border: alive in all of the loop's iterations.
      life.birth = use.first.loop == -1 ? use.first.time : loops_[static_cast<size_t>(use.first.loop)].begin;
      life.death = use.last.loop == -1 ? use.last.time : loops_[static_cast<size_t>(use.last.loop)].end - 1;
    }
    life.death = std::max(life.death, use.beside_until);
    return life;
  }

  void collect() {
    for (size_t i = 0; i < uses_.size(); ++i) {
      const auto id = static_cast<StorageId>(i);
      const Storage& storage = program_.storages[i];
      if (storage.lifetime == Lifetime::run) {
        int64_t& sum = timeline_.run_bytes[static_cast<size_t>(storage.home)];
        sum = checked_add(sum, align_up(storage.bytes, alignment_of(storage.home)));
        continue;
      }
      for (int64_t instance = 0; instance < storage.instances; ++instance) {
        if (!uses_[i][static_cast<size_t>(instance)].used) continue;
        const Life next = life(id, instance);
        if (!timeline_.lives.empty()) {
          Life& previous = timeline_.lives.back();
          if (previous.storage == id && previous.first_instance + previous.count == instance &&
              previous.birth == next.birth && previous.death == next.death) {
            ++previous.count;
            previous.bytes = checked_add(previous.bytes, next.bytes);
            continue;
          }
        }
        timeline_.lives.push_back(next);
      }
    }
  }

  const Program& program_;
  Timeline timeline_;
  std::vector<std::vector<Use>> uses_;  // by storage, by instance
  std::vector<Loop> loops_;
  int32_t loop_ = -1;  // the layer loop being walked
  int64_t iteration_ = 0, layer_ = 0;
};

}  // namespace

Timeline live_ranges(const Program& program) { return Walk(program).run(); }

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
