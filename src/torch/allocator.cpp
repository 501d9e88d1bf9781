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
  std::optional<int64_t> address = take_cached(rounded, key);
  if (!address) {
    collect_garbage();
    address = reserve(rounded, key);
  }
  if (!address && release_oversize(rounded, key)) address = reserve(rounded, key);
  if (!address && captures_ == 0) {
    release_cached();
    ++retries_;
    address = reserve(rounded, key);
  }
  if (!address) return std::nullopt;
  return hand_out(*address, rounded, bytes);
}

void Allocator::free(int64_t address) {
  completed_.erase(address);  // of another block that lay there
  const auto cell = find(address, Use::allocated);
  totals_.allocated_bytes -= cell->second.bytes;
  give_back(cell);
}

void Allocator::request_free(int64_t address) {
  completed_.erase(address);  // of another block that lay there
  const auto cell = find(address, Use::allocated);
  cell->second.use = Use::pending;
  totals_.allocated_bytes -= cell->second.bytes;
}

void Allocator::complete_free(int64_t address) {
  if (completed_.erase(address) > 0) return;
  give_back(find(address, Use::pending));
}

void Allocator::give_back(Cells::iterator cell) {
  totals_.requested_bytes -= cell->second.requested_bytes;
  totals_.active_bytes -= cell->second.bytes;
  cell->second.requested_bytes = 0;
  cell->second.use = Use::free;
  enlist(merge(cell));
}

int64_t Allocator::largest_free_bytes(int64_t stream, PoolId pool, bool small) const {
  const auto found = free_.find({stream, pool, small});
  return found == free_.end() || found->second.empty() ? 0 : found->second.rbegin()->bytes;
}

int64_t Allocator::block_bytes(int64_t address) const {
  const auto cell = cells_.find(address);
  return cell == cells_.end() ? 0 : cell->second.bytes;
}

std::map<int64_t, int64_t> Allocator::segments() const {
  std::map<int64_t, int64_t> segments;
  int64_t end = -1, owner = -1;
  for (const auto& [address, cell] : cells_) {
    if (cell.use == Use::unmapped) continue;
    const bool continues = address == end && cell.segment == owner;
    const int64_t start = continues ? std::prev(segments.end())->first : address;
    segments[start] += cell.bytes;
    end = address + cell.bytes;
    owner = cell.segment;
  }
  return segments;
}

void Allocator::adopt(const Segment& segment) {
  const auto wrong = [&](const char* what) {
    return Error("the segment at " + std::to_string(segment.address) + " " + what, "", "the snapshot is damaged");
  };
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
  const Region* const region = add_region(segment.address, segment.bytes, key, segment.expandable);
  if (segment.pool != PoolId{} && !segment.expandable) own_allocator_.insert(segment.pool);
  totals_.reserved_bytes += segment.bytes;
  addresses_.leave_out(segment.address, segment.bytes);
  for (const Block& block : segment.blocks) {
    const bool free = block.state == BlockState::inactive;
    const Use use = free ? Use::free : block.state == BlockState::allocated ? Use::allocated : Use::pending;
    const auto cell =
        cells_.emplace(block.address, Cell{block.bytes, free ? 0 : block.requested_bytes, use, segment.address, region})
            .first;
    if (free) {
      enlist(merge(cell));
      continue;
    }
    totals_.requested_bytes = checked_add(totals_.requested_bytes, block.requested_bytes);
    totals_.active_bytes += block.bytes;
    if (use == Use::allocated) totals_.allocated_bytes += block.bytes;
  }
}

// --- how a block is found ---

// Best fit: the smallest free block that is large enough, the lowest of equals, or that of the oldest segment; with a split
// limit large blocks are kept for large requests.
std::optional<int64_t> Allocator::take_cached(int64_t rounded, const PoolKey& key) {
  const FreeSet& blocks = free_[key];
  auto best = blocks.lower_bound({rounded, 0, 0});
  if (!expands(key)) best = plain_from(best, blocks);
  if (best == blocks.end()) return std::nullopt;
  const auto [held, age, address] = cells_.at(best->address).region->expandable ? *least_room(best, blocks) : *best;
  if (rounded < settings_.max_split_bytes && held >= settings_.max_split_bytes) return std::nullopt;
  if (rounded >= settings_.max_split_bytes && held >= rounded + settings_.max_non_split_rounding_bytes) return std::nullopt;
  return address;
}

bool Allocator::expands(const PoolKey& key) const {
  return settings_.expandable_segments && !own_allocator_.contains(key.pool);
}

std::optional<int64_t> Allocator::reserve(int64_t rounded, const PoolKey& key) {
  // Counted as a segment of its own even where pages would be enough.
  const int64_t wanted = checked_add(totals_.reserved_bytes, segment_bytes(rounded, settings_));
  if (settings_.allowed_bytes && wanted > *settings_.allowed_bytes) return std::nullopt;
  return expands(key) ? expand(rounded, key) : reserve_segment(rounded, key);
}

std::optional<int64_t> Allocator::reserve_segment(int64_t rounded, const PoolKey& key) {
  const int64_t bytes = segment_bytes(rounded, settings_);
  if (checked_add(totals_.reserved_bytes, bytes) > settings_.limit_bytes) return std::nullopt;
  const int64_t address = new_address(bytes);
  const Region* const region = add_region(address, bytes, key, false);
  totals_.reserved_bytes += bytes;
  enlist(cells_.emplace(address, Cell{bytes, 0, Use::free, address, region}).first);
  return address;
}

const Allocator::Region* Allocator::add_region(int64_t address, int64_t bytes, const PoolKey& key, bool expandable) {
  const int64_t age = settings_.prefers_older_segments ? ++regions_made_ : 0;
  return &(regions_[address] = {bytes, key, expandable, &free_[key], age});
}

int64_t Allocator::hand_out(int64_t address, int64_t rounded, int64_t bytes) {
  const auto cell = cells_.find(address);
  const Region& region = *cell->second.region;
  delist(cell);
  if (splits(cell->second.bytes, rounded, region.key.small, region.expandable, settings_)) enlist(cut(cell, rounded));
  cell->second.use = Use::allocated;
  cell->second.requested_bytes = bytes;
  totals_.allocated_bytes += cell->second.bytes;
  totals_.requested_bytes += bytes;
  totals_.active_bytes += cell->second.bytes;
  return address;
}

// The first block from `block` on that is no part of an expandable segment: those are left alone once they are switched off.
Allocator::FreeSet::const_iterator Allocator::plain_from(FreeSet::const_iterator block, const FreeSet& blocks) const {
  while (block != blocks.end() && cells_.at(block->address).region->expandable) ++block;
  return block;
}

// A free block of an expandable segment counts with the address space behind it: of blocks that are large enough, the one
// that spoils least of it.
Allocator::FreeSet::const_iterator Allocator::least_room(FreeSet::const_iterator block, const FreeSet& blocks) const {
  const auto room = [&](FreeSet::const_iterator at) { return room_after(cells_.find(at->address)); };
  for (auto next = std::next(block); next != blocks.end() && room(next) < room(block); ++next) {
    if (!cells_.at(next->address).region->expandable) break;
    block = next;
  }
  return block;
}

// --- cells ---

Allocator::Cells::iterator Allocator::find(int64_t address, Use use) {
  const auto cell = cells_.find(address);
  if (cell == cells_.end() || cell->second.use != use)
    throw Error("no block to free at address " + std::to_string(address), "", "free what is allocated, once");
  return cell;
}

// Cuts `cell` after `bytes`; the rest, of the same use, is returned.
Allocator::Cells::iterator Allocator::cut(Cells::iterator cell, int64_t bytes) {
  Cell rest = cell->second;
  rest.bytes -= bytes;
  rest.requested_bytes = 0;
  cell->second.bytes = bytes;
  return cells_.emplace(cell->first + bytes, rest).first;
}

bool Allocator::joins(Cells::const_iterator left, Cells::const_iterator right) const {
  return left->second.segment == right->second.segment && left->second.use == right->second.use &&
         left->first + left->second.bytes == right->first;
}

// `cell`, which is in no list, with its neighbours of the same use.
Allocator::Cells::iterator Allocator::merge(Cells::iterator cell) {
  if (const auto next = std::next(cell); next != cells_.end() && joins(cell, next)) {
    delist(next);
    cell->second.bytes += next->second.bytes;
    cells_.erase(next);
  }
  if (cell == cells_.begin()) return cell;
  const auto before = std::prev(cell);
  if (!joins(before, cell)) return cell;
  delist(before);
  before->second.bytes += cell->second.bytes;
  cells_.erase(cell);
  return before;
}

bool Allocator::fills_region(Cells::const_iterator cell) const {
  const Region& region = *cell->second.region;
  return !region.expandable && cell->second.bytes == region.bytes;
}

// What a free cell would give back to the device.
int64_t Allocator::releasable_bytes(Cells::const_iterator cell) const {
  if (fills_region(cell)) return cell->second.bytes;
  const auto [first, end] = whole_pages(cell);
  return end - first;
}

// Puts a free or unmapped cell where allocations look for it.
void Allocator::enlist(Cells::iterator cell) {
  const Region& region = *cell->second.region;
  if (cell->second.use == Use::unmapped) unmapped_[region.key].insert(cell->first);
  if (cell->second.use != Use::free) return;
  cell->second.free_since = searches_;
  region.free_blocks->insert({cell->second.bytes, region.age, cell->first});
  totals_.cached_bytes += releasable_bytes(cell);
}

void Allocator::delist(Cells::const_iterator cell) {
  const Region& region = *cell->second.region;
  if (cell->second.use == Use::unmapped) unmapped_[region.key].erase(cell->first);
  if (cell->second.use != Use::free) return;
  region.free_blocks->erase({cell->second.bytes, region.age, cell->first});
  totals_.cached_bytes -= releasable_bytes(cell);
}

int64_t Allocator::new_address(int64_t bytes) {
  const auto address = addresses_.take(bytes);
  if (!address) throw Error("segments need more address space than a device has", "", "the sizes are damaged");
  return *address;
}

}  // namespace snug
