#include "torch/lifetimes.h"

#include <algorithm>
#include <map>

#include "base/checked.h"

namespace snug {

namespace {

// Reserved memory as the events cut it; neighbours are not joined.
class Reserved {
 public:
  explicit Reserved(const LifeSinks& sinks) : sinks_(sinks) {}

  void add(int64_t address, const SegmentExtent& extent, size_t position) {
    stretches_[address] = {address, extent.bytes, extent.expandable, extent.small, position, position};
  }

  void remove(int64_t address, int64_t bytes, size_t position) {
    const int64_t end = checked_add(address, bytes);
    cut(address, position);
    cut(end, position);
    const auto from = stretches_.lower_bound(address), to = stretches_.lower_bound(end);
    for (auto gone = from; gone != to; ++gone) tell(gone->second, position);
    stretches_.erase(from, to);
  }

  void end(size_t position) {
    for (const auto& [address, stretch] : stretches_) tell(stretch, position);
  }

 private:
  void tell(ReservedLife life, size_t end) const {
    life.end = end;
    if (life.end > life.first) sinks_.reserved(life);
  }

  // The stretch that `address` lies in goes on as two.
  void cut(int64_t address, size_t position) {
    const auto after = stretches_.lower_bound(address);
    if (after == stretches_.begin()) return;
    ReservedLife& left = std::prev(after)->second;
    if (left.address + left.bytes <= address) return;
    tell(left, position);
    ReservedLife right = left;
    right.address = address;
    right.bytes = left.address + left.bytes - address;
    left.bytes -= right.bytes;
    left.first = right.first = position;
    stretches_.emplace(address, right);
  }

  const LifeSinks& sinks_;
  std::map<int64_t, ReservedLife> stretches_;  // by address
};

}  // namespace

void tell_lives(const Snapshot& snapshot, int device, const LifeSinks& sinks) {
  Replay replay(snapshot, device);
  Reserved reserved(sinks);
  for (const auto& [address, extent] : replay.segments()) reserved.add(address, extent, 0);
  const auto ends = [&](int64_t address, const LiveBlock& block, size_t end) {
    if (end == block.first) return;
    const bool older = block.event == LiveBlock::kBefore;
    sinks.block({address, block.bytes, block.stack, older, block.first, std::min(block.asked, end), end});
  };
  const auto position = [&] { return replay.position() + 1; };  // a hook is called before the event counts as played
  replay.tell(
      {.block_began = [](int64_t, const LiveBlock&) {},
       .block_ended = [&](int64_t address, const LiveBlock& block) { ends(address, block, position()); },
       .memory_added = [&](int64_t address, const SegmentExtent& extent) { reserved.add(address, extent, position()); },
       .memory_removed = [&](int64_t address, int64_t bytes) { reserved.remove(address, bytes, position()); }});
  while (replay.next()) {
  }
  for (const auto& [address, block] : replay.live()) ends(address, block, replay.events() + 1);
  reserved.end(replay.events() + 1);
}

}  // namespace snug
