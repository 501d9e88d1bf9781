#include "torch/allocator.h"

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "base/error.h"

namespace snug {

std::optional<int64_t> Allocator::allocate(int64_t bytes, int64_t stream, PoolId pool) {
  const int64_t rounded = rounded_bytes(bytes, settings_);
  const PoolKey key{stream, pool, is_small(rounded)};
  if (pool == PoolId{} && !key.small) ++searches_;
  Cell* cell = take_cached(rounded, key);
  if (cell == nullptr) {
    collect_garbage();
    cell = reserve(rounded, key);
  }
  if (cell == nullptr && release_oversize(rounded, key)) cell = reserve(rounded, key);
  if (cell == nullptr && captures_ == 0) {
    release_cached();
    ++retries_;
    cell = reserve(rounded, key);
  }
  if (cell == nullptr) return std::nullopt;
  return hand_out(cell, rounded, bytes);
}

void Allocator::free(int64_t address) {
  completed_.erase(address);  // of another block that lay there
  Cell* const cell = find(address, Use::allocated);
  totals_.allocated_bytes -= cell->bytes;
  give_back(cell);
}

void Allocator::request_free(int64_t address) {
  completed_.erase(address);  // of another block that lay there
  Cell* const cell = find(address, Use::allocated);
  cell->use = Use::pending;
  totals_.allocated_bytes -= cell->bytes;
}

void Allocator::complete_free(int64_t address) {
  if (completed_.erase(address) > 0) return;
  give_back(find(address, Use::pending));
}

void Allocator::give_back(Cell* cell) {
  given_.erase(cell->address);
  totals_.requested_bytes -= cell->requested_bytes;
  totals_.active_bytes -= cell->bytes;
  cell->requested_bytes = 0;
  cell->use = Use::free;
  enlist(merge(cell));
}

int64_t Allocator::largest_free_bytes(int64_t stream, PoolId pool, bool small) const {
  const auto found = pools_.find({stream, pool, small});
  return found == pools_.end() || found->second.free.empty() ? 0 : found->second.free.rbegin()->bytes;
}

int64_t Allocator::block_bytes(int64_t address) const {
  Cell* const* const cell = given_.find(address);
  return cell == nullptr ? 0 : (*cell)->bytes;
}

std::map<int64_t, int64_t> Allocator::segments() const {
  std::map<int64_t, int64_t> segments;
  for (const auto& [begin, region] : regions_) {
    int64_t end = -1, start = -1;
    for (const Cell* cell = region.first; cell != nullptr; cell = cell->after) {
      if (cell->use == Use::unmapped) continue;
      if (cell->address != end) start = cell->address;
      segments[start] += cell->bytes;
      end = cell->address + cell->bytes;
    }
  }
  return segments;
}

void Allocator::adopt(const Segment& segment) {
  const auto wrong = [&](const char* what) {
    return Error("the segment at " + std::to_string(segment.address) + " " + what, "", "the snapshot is damaged");
  };
  if (segment.address < 0) throw wrong("lies below 0");
  const int64_t end = checked_add(segment.address, segment.bytes);
  const auto next = regions_.lower_bound(segment.address);
  if (segment.bytes <= 0 || (next != regions_.end() && next->first < end) ||
      (next != regions_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > segment.address))
    throw wrong("overlaps another");
  int64_t filled = segment.address;
  for (const Block& block : segment.blocks) {
    if (block.bytes <= 0 || block.address != filled) throw wrong("is not filled by its blocks");
    filled = checked_add(filled, block.bytes);
  }
  if (filled != end) throw wrong("is not filled by its blocks");
  const PoolKey key{segment.stream, segment.pool, segment.small};
  Region& region = add_region(segment.address, segment.bytes, key, segment.expandable);
  if (segment.pool != PoolId{} && !segment.expandable) own_allocator_.insert(segment.pool);
  totals_.reserved_bytes += segment.bytes;
  addresses_.leave_out(segment.address, segment.bytes);
  Cell* last = nullptr;
  for (const Block& block : segment.blocks) {
    const bool free = block.state == BlockState::inactive;
    const Use use = free ? Use::free : block.state == BlockState::allocated ? Use::allocated : Use::pending;
    last = add_cell(last, {block.address, block.bytes, free ? 0 : block.requested_bytes, use, &region});
    if (free) {
      last = merge(last);
      enlist(last);
      continue;
    }
    given_.insert(block.address, last);
    totals_.requested_bytes = checked_add(totals_.requested_bytes, block.requested_bytes);
    totals_.active_bytes += block.bytes;
    if (use == Use::allocated) totals_.allocated_bytes += block.bytes;
  }
}

// --- how a block is found ---

// Best fit: the smallest free block that is large enough, the lowest of equals, or that of the oldest segment; with a split
// limit large blocks are kept for large requests.
Allocator::Cell* Allocator::take_cached(int64_t rounded, const PoolKey& key) {
  const FreeSet& blocks = pool_of(key).free;
  auto best = blocks.lower_bound({rounded});
  if (expandable_regions_ > 0 && !expands(key)) best = plain_from(best, blocks);
  if (best == blocks.end()) return nullptr;
  const FreeBlock& block = best->cell->region->expandable ? *least_room(best, blocks) : *best;
  if (rounded < settings_.max_split_bytes && block.bytes >= settings_.max_split_bytes) return nullptr;
  if (rounded >= settings_.max_split_bytes && block.bytes >= rounded + settings_.max_non_split_rounding_bytes)
    return nullptr;
  return block.cell;
}

bool Allocator::expands(const PoolKey& key) const {
  return settings_.expandable_segments && !own_allocator_.contains(key.pool);
}

Allocator::Cell* Allocator::reserve(int64_t rounded, const PoolKey& key) {
  // Counted as a segment of its own even where pages would be enough.
  const int64_t wanted = checked_add(totals_.reserved_bytes, segment_bytes(rounded, settings_));
  if (settings_.allowed_bytes && wanted > *settings_.allowed_bytes) return nullptr;
  return expands(key) ? expand(rounded, key) : reserve_segment(rounded, key);
}

Allocator::Cell* Allocator::reserve_segment(int64_t rounded, const PoolKey& key) {
  const int64_t bytes = segment_bytes(rounded, settings_);
  if (checked_add(totals_.reserved_bytes, bytes) > settings_.limit_bytes) return nullptr;
  const int64_t address = new_address(bytes);
  Cell* const cell = add_cell(nullptr, {address, bytes, 0, Use::free, &add_region(address, bytes, key, false)});
  totals_.reserved_bytes += bytes;
  enlist(cell);
  return cell;
}

Allocator::Pool& Allocator::pool_of(const PoolKey& key) {
  auto*& recent = recent_[key.small ? 1 : 0];
  if (recent == nullptr || recent->first != key) recent = &*pools_.try_emplace(key).first;
  return recent->second;
}

Allocator::Region& Allocator::add_region(int64_t address, int64_t bytes, const PoolKey& key, bool expandable) {
  const int64_t age = settings_.prefers_older_segments ? ++regions_made_ : 0;
  if (expandable) ++expandable_regions_;
  return regions_[address] = {address, bytes, key, expandable, &pool_of(key), age};
}

int64_t Allocator::hand_out(Cell* cell, int64_t rounded, int64_t bytes) {
  const Region& region = *cell->region;
  delist(cell);
  if (splits(cell->bytes, rounded, region.key.small, region.expandable, settings_)) enlist(cut(cell, rounded));
  cell->use = Use::allocated;
  cell->requested_bytes = bytes;
  given_.insert(cell->address, cell);
  totals_.allocated_bytes += cell->bytes;
  totals_.requested_bytes += bytes;
  totals_.active_bytes += cell->bytes;
  return cell->address;
}

// The first block from `block` on that is no part of an expandable segment: those are left alone once they are switched off.
Allocator::FreeSet::const_iterator Allocator::plain_from(FreeSet::const_iterator block, const FreeSet& blocks) const {
  while (block != blocks.end() && block->cell->region->expandable) ++block;
  return block;
}

// A free block of an expandable segment counts with the address space behind it: of blocks that are large enough, the one
// that spoils least of it.
Allocator::FreeSet::const_iterator Allocator::least_room(FreeSet::const_iterator block, const FreeSet& blocks) const {
  const auto room = [&](FreeSet::const_iterator at) { return room_after(at->cell); };
  for (auto next = std::next(block); next != blocks.end() && room(next) < room(block); ++next) {
    if (!next->cell->region->expandable) break;
    block = next;
  }
  return block;
}

// --- cells ---

Allocator::Cell* Allocator::find(int64_t address, Use use) {
  Cell* const* const cell = given_.find(address);
  if (cell == nullptr || (*cell)->use != use)
    throw Error("no block to free at address " + std::to_string(address), "", "free what is allocated, once");
  return *cell;
}

// Puts `cell` behind `before`, or first in its region.
Allocator::Cell* Allocator::add_cell(Cell* before, const Cell& cell) {
  if (unused_.empty()) unused_.push_back(&cells_.emplace_back());
  Cell* const added = unused_.back();
  unused_.pop_back();
  *added = cell;
  added->before = before;
  added->after = before == nullptr ? nullptr : before->after;
  (before == nullptr ? added->region->first : before->after) = added;
  if (added->after != nullptr) added->after->before = added;
  return added;
}

void Allocator::remove(Cell* cell) {
  (cell->before == nullptr ? cell->region->first : cell->before->after) = cell->after;
  if (cell->after != nullptr) cell->after->before = cell->before;
  unused_.push_back(cell);
}

// Cuts `cell` after `bytes`; the rest, of the same use, is returned.
Allocator::Cell* Allocator::cut(Cell* cell, int64_t bytes) {
  Cell* const rest = add_cell(cell, {cell->address + bytes, cell->bytes - bytes, 0, cell->use, cell->region});
  cell->bytes = bytes;
  return rest;
}

// `cell`, which is in no list, with its neighbours of the same use.
Allocator::Cell* Allocator::merge(Cell* cell) {
  if (Cell* const next = cell->after; next != nullptr && next->use == cell->use) {
    delist(next);
    cell->bytes += next->bytes;
    remove(next);
  }
  Cell* const before = cell->before;
  if (before == nullptr || before->use != cell->use) return cell;
  delist(before);
  before->bytes += cell->bytes;
  remove(cell);
  return before;
}

bool Allocator::fills_region(const Cell* cell) const {
  const Region& region = *cell->region;
  return !region.expandable && cell->bytes == region.bytes;
}

// What a free cell would give back to the device.
int64_t Allocator::releasable_bytes(const Cell* cell) const {
  if (fills_region(cell)) return cell->bytes;
  const auto [first, end] = whole_pages(cell);
  return end - first;
}

// Puts a free or unmapped cell where allocations look for it.
void Allocator::enlist(Cell* cell) {
  const Region& region = *cell->region;
  if (cell->use == Use::unmapped) region.pool->unmapped[cell->address] = cell;
  if (cell->use != Use::free) return;
  const FreeBlock block{cell->bytes, region.age, cell->address, cell};
  cell->free_since = searches_;
  if (spare_.empty()) {
    cell->listed = region.pool->free.insert(block).first;
  } else {
    spare_.back().value() = block;
    cell->listed = region.pool->free.insert(std::move(spare_.back())).position;
    spare_.pop_back();
  }
  totals_.cached_bytes += releasable_bytes(cell);
}

void Allocator::delist(Cell* cell) {
  const Region& region = *cell->region;
  if (cell->use == Use::unmapped) region.pool->unmapped.erase(cell->address);
  if (cell->use != Use::free) return;
  spare_.push_back(region.pool->free.extract(cell->listed));
  totals_.cached_bytes -= releasable_bytes(cell);
}

int64_t Allocator::new_address(int64_t bytes) {
  const auto address = addresses_.take(bytes);
  if (!address) throw Error("segments need more address space than a device has", "", "the sizes are damaged");
  return *address;
}

}  // namespace snug
