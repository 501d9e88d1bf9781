#include "plan/layout.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>

namespace snug {

namespace {

struct Block {
  int64_t bytes, alignment;
  int32_t birth, death;
  bool crosses;  // made in one stage, used in another: saved for backward
};

// A block that has its place: all that the search for gaps reads, side by side.
struct Taken {
  int64_t start, end;
  int32_t birth, death;
};

// Greedy placement in a given order: each block goes to the lowest gap that holds it among the blocks alive with it.
int64_t place(const std::vector<Block>& blocks, const std::vector<int32_t>& order, std::vector<int64_t>& offsets,
              int64_t stop_at) {
  std::vector<Taken> taken;  // by start
  taken.reserve(blocks.size());
  std::vector<Taken> beside(blocks.size());  // those of them that are alive with the block
  int64_t top = 0;
  for (int32_t index : order) {
    const Block& block = blocks[static_cast<size_t>(index)];
    int64_t best = -1, best_gap = 0, end = 0;  // `end`: where the block would begin
    size_t count = 0;
    for (const Taken& other : taken) {  // no branch: whether lives meet cannot be foretold
      beside[count] = other;
      count += static_cast<size_t>(other.death >= block.birth) & static_cast<size_t>(block.death >= other.birth);
    }
    for (const Taken& other : std::span(beside).first(count)) {
      const int64_t gap = other.start - end;
      if (gap >= block.bytes && (best < 0 || gap < best_gap)) {
        best = end;
        best_gap = gap;
      }
      end = std::max(end, align_up(other.end, block.alignment));
    }
    const int64_t offset = best >= 0 ? best : end;
    offsets[static_cast<size_t>(index)] = offset;
    top = std::max(top, offset + block.bytes);
    if (top >= stop_at) return top;  // no better than what we have
    const auto position = std::upper_bound(taken.begin(), taken.end(), offset,
                                           [](int64_t value, const Taken& other) { return value < other.start; });
    taken.insert(position, {offset, offset + block.bytes, block.birth, block.death});
  }
  return top;
}

class Packing {
 public:
  // `beside`: bytes of the arena that are not packed here.
  Packing(const std::vector<Block>& blocks, int64_t lower_bound, int64_t beside)
      : blocks_(blocks),
        lower_bound_(lower_bound),
        enough_(lower_bound + std::max(lower_bound / 1000, (lower_bound + beside) / 10000)),
        order_(blocks.size()),
        offsets_(blocks.size()),
        best_offsets_(blocks.size()) {
    std::iota(order_.begin(), order_.end(), 0);
  }

  // Several sorted orders, then local search: blocks at the top of the arena are moved to the front of the order. What is
  // saved for backward nests (last made, first used), so in order of birth it stacks without holes, with temporaries above.
  int64_t run() {
    const auto length = [](const Block& b) { return int64_t{b.death} - b.birth + 1; };
    attempt([&](const Block& a, const Block& b) { return a.bytes > b.bytes; });
    attempt([&](const Block& a, const Block& b) {
      if (a.crosses != b.crosses) return a.crosses;
      return a.crosses ? (a.birth != b.birth ? a.birth < b.birth : a.death > b.death) : a.bytes > b.bytes;
    });
    attempt([&](const Block& a, const Block& b) {
      if (a.crosses != b.crosses) return a.crosses;
      return a.crosses ? (a.death != b.death ? a.death > b.death : a.birth < b.birth) : length(a) > length(b);
    });
    attempt([&](const Block& a, const Block& b) {
      if (a.crosses != b.crosses) return a.crosses;
      return a.crosses ? (a.death != b.death ? a.death > b.death : a.birth < b.birth) : a.bytes > b.bytes;
    });
    attempt([&](const Block& a, const Block& b) { return length(a) > length(b); });
    attempt([&](const Block& a, const Block& b) {
      return static_cast<double>(a.bytes) * static_cast<double>(length(a)) >
             static_cast<double>(b.bytes) * static_cast<double>(length(b));
    });
    attempt([&](const Block& a, const Block& b) { return a.birth < b.birth; });
    attempt([&](const Block& a, const Block& b) { return a.death > b.death; });
    for (int round = 0; round < 400 && !done(); ++round) improve(round);
    return best_;
  }

  const std::vector<int64_t>& offsets() const { return best_offsets_; }

 private:
  bool done() const { return best_ <= enough_; }

  template <class Less>
  void attempt(Less less) {
    if (done()) return;
    std::vector<int32_t> order(blocks_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return less(blocks_[static_cast<size_t>(a)], blocks_[static_cast<size_t>(b)]);
    });
    try_order(order);
  }

  bool try_order(const std::vector<int32_t>& order) {
    const int64_t top = place(blocks_, order, offsets_, best_);
    if (top >= best_) return false;
    best_ = top;
    best_offsets_ = offsets_;
    order_ = order;
    return true;
  }

  // Blocks that reach above the lower bound had no room left below: place one of them earlier.
  void improve(int round) {
    std::vector<int32_t> order = order_;
    std::vector<size_t> high;
    for (size_t i = 0; i < order.size(); ++i) {
      const auto block = static_cast<size_t>(order[i]);
      if (best_offsets_[block] + blocks_[block].bytes > lower_bound_) high.push_back(i);
    }
    if (high.empty()) return;
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
    const size_t from = high[(random_ >> 33) % high.size()];
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
    const size_t to = round % 2 == 0 ? 0 : (random_ >> 33) % (from + 1);
    std::rotate(order.begin() + static_cast<int64_t>(to), order.begin() + static_cast<int64_t>(from),
                order.begin() + static_cast<int64_t>(from) + 1);
    if (!try_order(order) && round % 3 == 2) order_ = order;  // a step aside now and then; the best offsets are kept
  }

  const std::vector<Block>& blocks_;
  int64_t lower_bound_, enough_;  // less is impossible; less is not worth looking for
  std::vector<int32_t> order_;
  std::vector<int64_t> offsets_, best_offsets_;
  int64_t best_ = std::numeric_limits<int64_t>::max();
  uint64_t random_ = 1;
};

int64_t red_zone_in(Home home, int64_t red_zone) { return home == Home::device ? red_zone : 0; }

// Storages that live throughout the run: one after the other from the start of their home.
Layout place_run_storages(const Program& program, int64_t red_zone) {
  Layout layout;
  const size_t count = program.storages.size();
  layout.storages.resize(count);
  layout.stride.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const Storage& storage = program.storages[i];
    layout.stride[i] = align_up(storage.bytes, alignment_of(storage)) +
                       align_up(red_zone_in(storage.home, red_zone), alignment_of(storage));
    if (storage.lifetime != Lifetime::run) continue;
    int64_t& end = layout.of(storage.home).run_bytes;
    end = align_up(end, alignment_of(storage));
    layout.storages[i].offset = end;
    end = checked_add(end, checked_mul(layout.stride[i], storage.instances));
  }
  return layout;
}

// The computed storages of one home, above those of the run.
void place_computed_in(Home home, int64_t red_zone, Layout& layout) {
  const Timeline& timeline = layout.timeline;
  HomeLayout& in_home = layout.of(home);
  in_home.live_bytes = live_bytes(timeline, home, red_zone);
  const auto peak = std::max_element(in_home.live_bytes.begin(), in_home.live_bytes.end());
  if (peak != in_home.live_bytes.end()) {
    in_home.peak_live_bytes = *peak;
    in_home.peak_time = static_cast<int32_t>(peak - in_home.live_bytes.begin());
  }

  std::vector<const Life*> lives;
  std::vector<Block> blocks;
  int64_t base = in_home.run_bytes;
  for (const Life& life : timeline.lives) {
    if (life.home != home) continue;
    const bool crosses =
        timeline.stages[static_cast<size_t>(life.birth)] != timeline.stages[static_cast<size_t>(life.death)];
    blocks.push_back({checked_add(life.bytes, checked_mul(life.count, align_up(red_zone, life.alignment))), life.alignment,
                      life.birth, life.death, crosses});
    lives.push_back(&life);
    base = align_up(base, life.alignment);
  }
  Packing packing(blocks, in_home.peak_live_bytes, base);
  in_home.dynamic_bytes = blocks.empty() ? 0 : base - in_home.run_bytes + packing.run();
  for (size_t i = 0; i < lives.size(); ++i)
    layout.storages[static_cast<size_t>(lives[i]->storage)].runs.emplace_back(lives[i]->first_instance,
                                                                              base + packing.offsets()[i]);
  in_home.bytes = checked_add(in_home.run_bytes, in_home.dynamic_bytes);
}

void place_computed(const Program& program, int64_t red_zone, Layout& layout) {
  layout.timeline = live_ranges(program);
  for (int i = 0; i < kHomeCount; ++i) {
    const auto home = static_cast<Home>(i);
    place_computed_in(home, red_zone_in(home, red_zone), layout);
  }
  for (Placed& placed : layout.storages) std::sort(placed.runs.begin(), placed.runs.end());
}

}  // namespace

int64_t Layout::offset_of(StorageId storage, int64_t instance) const {
  const Placed& placed = storages[static_cast<size_t>(storage)];
  if (placed.runs.empty()) return placed.offset + instance * stride[static_cast<size_t>(storage)];
  const auto after = std::upper_bound(placed.runs.begin(), placed.runs.end(), instance,
                                      [](int64_t value, const auto& entry) { return value < entry.first; });
  if (after == placed.runs.begin()) throw std::logic_error("an instance that no op uses has no place");
  const auto run = after - 1;
  return run->second + (instance - run->first) * stride[static_cast<size_t>(storage)];
}

Layout lay_out(const Program& program, int64_t red_zone) {
  Layout layout = place_run_storages(program, red_zone);
  place_computed(program, red_zone, layout);
  return layout;
}

Layout lay_out_within(const Program& program, const Layout& shared) {
  Layout layout = place_run_storages(program, 0);
  for (size_t i = 0; i < program.storages.size(); ++i) {
    if (program.storages[i].lifetime != Lifetime::run) continue;
    layout.storages[i] = shared.storages[i];
    layout.stride[i] = shared.stride[i];
  }
  for (size_t home = 0; home < kHomeCount; ++home) layout.homes[home].run_bytes = shared.homes[home].run_bytes;
  place_computed(program, 0, layout);
  return layout;
}

}  // namespace snug
