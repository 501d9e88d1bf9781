#include "torch/replay.h"

#include <algorithm>
#include <unordered_map>

#include "base/checked.h"
#include "base/error.h"

namespace snug {
namespace {

constexpr int64_t kMostRecounted = int64_t{1} << 31U;  // blocks, counted again where segments change under them

}  // namespace

Replay::Replay(const Snapshot& snapshot, int device)
    : snapshot_(snapshot), device_(device), settings_(settings_of(snapshot.settings)) {
  take_segments();
  take_older();
}

bool Replay::next() {
  if (position_ == events()) return false;
  after_ = position_ + 1;
  play(snapshot_.event(device_, position_), position_);
  ++position_;
  return true;
}

void Replay::advance_to(size_t event) {
  while (position_ < event && next()) {
  }
}

int64_t Replay::largest_free_bytes() const {
  int64_t largest = 0;
  auto block = live_.begin();
  for (const auto& [start, segment] : segments_) {
    int64_t free_from = start;
    const int64_t end = start + segment.bytes;
    for (; block != live_.end() && block->first < end; ++block) {
      largest = std::max(largest, block->first - free_from);
      free_from = std::max(free_from, block->first + block->second.bytes);
    }
    largest = std::max(largest, end - free_from);
  }
  return largest;
}

// --- what is older than the trace ---

// The segments as they are in the file, then back through the trace to what they were before it.
void Replay::take_segments() {
  for (const Segment& segment : snapshot_.segments)
    if (segment.device == device_) add_memory(segment.address, segment.bytes, segment.expandable, segment.small);
  for (size_t i = events(); i > 0; --i) {
    const Event& event = snapshot_.event(device_, i - 1);
    const bool small = event.bytes == kSmallSegment;
    if (event.action == Action::segment_alloc || event.action == Action::segment_map)
      remove_memory(event.address, event.bytes);
    if (event.action == Action::segment_free) add_memory(event.address, event.bytes, false, small);
    if (event.action == Action::segment_unmap) add_memory(event.address, event.bytes, true, small);
  }
}

// Blocks that are freed without having been allocated in the trace, and blocks that are active at its end without.
void Replay::take_older() {
  enum class Fate : uint8_t { live, freed, gone };  // of the last block seen at an address
  std::unordered_map<int64_t, Fate> fates;
  std::map<int64_t, LiveBlock> older;
  bool requests = false;  // free_requested may be left out of a trace (skip_actions)
  for (size_t i = 0; i < events() && !requests; ++i) requests = snapshot_.event(device_, i).action == Action::free_requested;
  for (size_t i = 0; i < events(); ++i) {
    const Event& event = snapshot_.event(device_, i);
    const bool asked = event.action == Action::free_requested, completed = event.action == Action::free_completed;
    if (event.action == Action::alloc) fates[event.address] = Fate::live;
    if (!asked && !completed) continue;
    const auto [fate, first] = fates.try_emplace(event.address, Fate::live);
    if (first) {
      const int64_t bytes = rounded_bytes(event.bytes, settings_);
      older.try_emplace(event.address, LiveBlock{bytes, event.bytes, 0, LiveBlock::kBefore, completed && requests, false});
    }
    fate->second = asked && fate->second == Fate::live ? Fate::freed : completed ? Fate::gone : fate->second;
  }
  for (const Segment& segment : snapshot_.segments) {
    if (segment.device != device_) continue;
    for (const Block& block : segment.blocks) {
      if (block.state == BlockState::inactive || fates.contains(block.address)) continue;
      const bool pending = block.state == BlockState::pending_free;
      older.try_emplace(block.address,
                        LiveBlock{block.bytes, block.requested_bytes, block.stack, LiveBlock::kBefore, pending, true});
    }
  }
  for (const auto& [address, block] : older) put(address, block);
  for (auto block = live_.begin(); block != live_.end(); ++block) {
    const auto segment = segment_of(block->first);
    if (segment == segments_.end()) continue;
    const auto next = std::next(block);
    const int64_t end = segment->first + segment->second.bytes;
    take_slack(block, next == live_.end() ? end : std::min(end, next->first));
  }
}

// A large segment has no free gaps of 1 MiB or less, since none are split off: such a gap belongs to the block before it.
void Replay::take_slack(Blocks::iterator block, int64_t until) {
  const int64_t gap = until - block->first - block->second.bytes;
  if (block->second.exact || block->second.event != LiveBlock::kBefore || gap <= 0 || gap > kSmallRequest) return;
  const auto segment = segment_of(block->first);
  if (segment == segments_.end() || segment->second.small || segment->second.expandable) return;
  if (hooks_.block_ended) hooks_.block_ended(block->first, block->second);
  block->second.bytes += gap;
  block->second.first = after_;
  if (hooks_.block_began) hooks_.block_began(block->first, block->second);
  totals_.active_bytes = checked_add(totals_.active_bytes, gap);
  if (!block->second.pending) totals_.allocated_bytes = checked_add(totals_.allocated_bytes, gap);
  set_active(segment->second, checked_add(segment->second.active_bytes, gap));
}

// --- events ---

void Replay::play(const Event& event, size_t index) {
  switch (event.action) {
    case Action::alloc: return allocate(event, index);
    case Action::free_requested: return request_free(event);
    case Action::free_completed: return complete_free(event.address);
    case Action::segment_alloc: return add_memory(event.address, event.bytes, false, event.bytes == kSmallSegment);
    case Action::segment_map: return add_memory(event.address, event.bytes, true, event.bytes == kSmallSegment);
    case Action::segment_free:
    case Action::segment_unmap: return remove_memory(event.address, event.bytes);
    default: return;
  }
}

void Replay::allocate(const Event& event, size_t index) {
  // A block starts where free space starts.
  if (const auto after = live_.lower_bound(event.address); after != live_.begin())
    take_slack(std::prev(after), event.address);
  put(event.address, {block_bytes(event.address, event.bytes), event.bytes, event.stack, index, false, false});
}

void Replay::request_free(const Event& event) {
  const auto block = live_.find(event.address);
  if (block == live_.end() || block->second.pending) return;
  block->second.pending = true;
  block->second.asked = after_;
  totals_.allocated_bytes -= block->second.bytes;
}

void Replay::complete_free(int64_t address) {
  const auto block = live_.find(address);
  if (block == live_.end()) return;
  const LiveBlock& gone = block->second;
  if (hooks_.block_ended) hooks_.block_ended(address, gone);
  if (!gone.pending) totals_.allocated_bytes -= gone.bytes;
  totals_.active_bytes -= gone.bytes;
  totals_.requested_bytes -= gone.requested_bytes;
  if (const auto segment = segment_of(address); segment != segments_.end())
    set_active(segment->second, segment->second.active_bytes - gone.bytes);
  live_.erase(block);
}

void Replay::put(int64_t address, const LiveBlock& block) {
  if (const auto there = live_.find(address); there != live_.end()) {  // its free was not recorded
    contradicted_ = checked_add(contradicted_, there->second.bytes);
    complete_free(address);
  }
  LiveBlock& put = live_.emplace(address, block).first->second;
  put.first = after_;
  if (block.pending) put.asked = after_;
  if (hooks_.block_began) hooks_.block_began(address, put);
  totals_.active_bytes = checked_add(totals_.active_bytes, block.bytes);
  totals_.requested_bytes = checked_add(totals_.requested_bytes, block.requested_bytes);
  if (!block.pending) totals_.allocated_bytes = checked_add(totals_.allocated_bytes, block.bytes);
  const auto segment = segment_of(address);
  if (segment == segments_.end()) {
    contradicted_ = checked_add(contradicted_, block.bytes);
    return;
  }
  set_active(segment->second, checked_add(segment->second.active_bytes, block.bytes));
}

// The block takes what is not worth splitting off from the gap that it falls into.
int64_t Replay::block_bytes(int64_t address, int64_t requested) {
  const int64_t rounded = rounded_bytes(requested, settings_);
  const auto segment = segment_of(address);
  if (segment == segments_.end()) return rounded;
  int64_t end = segment->first + segment->second.bytes;
  if (const auto next = live_.upper_bound(address); next != live_.end()) end = std::min(end, next->first);
  const int64_t gap = end - address;
  if (gap <= rounded || splits(gap, rounded, is_small(rounded), segment->second.expandable, settings_)) return rounded;
  return gap;
}

// --- segments ---

Replay::Segments::iterator Replay::segment_of(int64_t address) {
  const auto after = segments_.upper_bound(address);
  if (after == segments_.begin()) return segments_.end();
  const auto segment = std::prev(after);
  return address < segment->first + segment->second.bytes ? segment : segments_.end();
}

void Replay::set_active(SegmentExtent& segment, int64_t active_bytes) {
  if (segment.active_bytes == 0) totals_.cached_bytes -= segment.bytes;
  segment.active_bytes = active_bytes;
  if (segment.active_bytes == 0) totals_.cached_bytes += segment.bytes;
}

void Replay::count_active_again(Segments::iterator segment) {
  int64_t active = 0;
  const int64_t end = segment->first + segment->second.bytes;
  for (auto block = live_.lower_bound(segment->first); block != live_.end() && block->first < end; ++block)
    active = checked_add(active, block->second.bytes), ++recounted_;
  if (recounted_ > kMostRecounted)
    throw Error("the trace maps and unmaps memory under its blocks too often", "",
                "give the file that torch.cuda.memory._dump_snapshot wrote");
  set_active(segment->second, active);
}

// New memory; of expandable segments it joins what it touches.
void Replay::add_memory(int64_t address, int64_t bytes, bool expandable, bool small) {
  if (bytes <= 0) return;
  remove_memory(address, bytes);  // what is mapped twice counts once
  if (hooks_.memory_added) hooks_.memory_added(address, {bytes, 0, expandable, small});
  totals_.reserved_bytes = checked_add(totals_.reserved_bytes, bytes);
  totals_.cached_bytes = checked_add(totals_.cached_bytes, bytes);
  auto segment = segments_.emplace(address, SegmentExtent{bytes, 0, expandable, small}).first;
  count_active_again(segment);
  if (!expandable) return;
  const auto join = [&](Segments::iterator left, Segments::iterator right) {
    if (!left->second.expandable || !right->second.expandable || left->first + left->second.bytes != right->first)
      return left;
    const int64_t active = left->second.active_bytes + right->second.active_bytes;
    set_active(left->second, 1);  // neither counts as cached while they are joined
    set_active(right->second, 1);
    left->second.bytes += right->second.bytes;
    segments_.erase(right);
    set_active(left->second, active);
    return left;
  };
  if (const auto next = std::next(segment); next != segments_.end()) segment = join(segment, next);
  if (segment != segments_.begin()) join(std::prev(segment), segment);
}

// Cuts the segment that `address` lies in, if any, there.
void Replay::split_memory(int64_t address) {
  const auto segment = segment_of(address);
  if (segment == segments_.end() || segment->first == address) return;
  SegmentExtent rest = segment->second;
  rest.bytes = segment->first + rest.bytes - address;
  rest.active_bytes = 1;
  set_active(segment->second, 1);
  segment->second.bytes -= rest.bytes;
  count_active_again(segment);
  count_active_again(segments_.emplace(address, rest).first);
}

void Replay::remove_memory(int64_t address, int64_t bytes) {
  if (bytes <= 0) return;
  const int64_t end = checked_add(address, bytes);
  if (hooks_.memory_removed) hooks_.memory_removed(address, bytes);
  split_memory(address);
  split_memory(end);
  for (auto segment = segments_.lower_bound(address); segment != segments_.end() && segment->first < end;) {
    set_active(segment->second, 1);
    totals_.reserved_bytes -= segment->second.bytes;
    segment = segments_.erase(segment);
  }
}

// --- questions ---

std::vector<size_t> oom_events(const Snapshot& snapshot, int device) {
  std::vector<size_t> events;
  for (size_t i = 0; i < snapshot.event_count(device); ++i)
    if (snapshot.event(device, i).action == Action::oom) events.push_back(i);
  return events;
}

Peak peak_of(const Snapshot& snapshot, int device) {
  Replay replay(snapshot, device);
  Peak peak{0, replay.totals()};
  while (replay.next())
    if (replay.totals().allocated_bytes > peak.totals.allocated_bytes) peak = {replay.position(), replay.totals()};
  return peak;
}

std::vector<LiveStack> live_by_stack(const Replay& replay) {
  std::unordered_map<uint64_t, LiveStack> sums;
  for (const auto& [address, block] : replay.live()) {
    const bool older = block.event == LiveBlock::kBefore;
    LiveStack& sum =
        sums.try_emplace(uint64_t{block.stack} * 2 + (older ? 1 : 0), LiveStack{block.stack, 0, 0, older}).first->second;
    sum.bytes = checked_add(sum.bytes, block.bytes);
    sum.requested_bytes = checked_add(sum.requested_bytes, block.requested_bytes);
    ++sum.blocks;
  }
  std::vector<LiveStack> stacks;
  stacks.reserve(sums.size());
  for (const auto& [key, sum] : sums) stacks.push_back(sum);
  std::sort(stacks.begin(), stacks.end(), [](const LiveStack& a, const LiveStack& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.stack != b.stack ? a.stack < b.stack : a.older < b.older;
  });
  return stacks;
}

}  // namespace snug
