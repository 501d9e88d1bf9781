// Expandable segments: much address space for each pool, memory mapped into it page by page where it is needed first
// (CUDACachingAllocator.cpp: find_expandable_block, try_allocate_expandable_block, map_block, unmap_block).
#include <algorithm>

#include "base/checked.h"
#include "torch/allocator.h"

namespace snug {
namespace {

constexpr int64_t kRoom = int64_t{1} << 41U;  // bytes of address space; PyTorch takes 9/8 of the device

}  // namespace

std::optional<int64_t> Allocator::expand(int64_t rounded, const PoolKey& key) {
  auto cell = find_room(rounded, key);
  if (cell == cells_.end()) return std::nullopt;
  if (cell->second.use == Use::unmapped) cell = map(cell, std::min(cell->second.bytes, rounded));
  while (cell != cells_.end() && cell->second.bytes < rounded) {  // free, and what follows is unmapped
    const auto next = std::next(cell);
    cell = map(next, std::min(next->second.bytes, rounded - cell->second.bytes));
  }
  return cell == cells_.end() ? std::nullopt : std::optional(cell->first);
}

// The lowest free or unmapped cell that starts enough such space; new address space if there is none.
Allocator::Cells::iterator Allocator::find_room(int64_t rounded, const PoolKey& key) {
  for (const int64_t address : unmapped_[key]) {
    auto cell = cells_.find(address);
    if (cell != cells_.begin()) {
      const auto before = std::prev(cell);
      if (before->second.use == Use::free && before->second.segment == cell->second.segment) cell = before;
    }
    int64_t room = 0;
    for (auto at = cell; room < rounded && at != cells_.end() && at->second.segment == cell->second.segment &&
                         (at->second.use == Use::free || at->second.use == Use::unmapped);
         ++at)
      room += at->second.bytes;
    if (room >= rounded) return cell;
  }
  return rounded <= kRoom ? add_room(key) : cells_.end();
}

Allocator::Cells::iterator Allocator::add_room(const PoolKey& key) {
  const int64_t page = page_bytes(key.small, settings_);
  const int64_t bytes = align_up(kRoom, page);
  const int64_t address = new_address(bytes);
  const Region* const region = add_region(address, bytes, key, true);
  const auto cell = cells_.emplace(address, Cell{bytes, 0, Use::unmapped, address, region}).first;
  enlist(cell);
  return cell;
}

// Maps the pages that hold the first `bytes` of an unmapped cell; the free cell that they then belong to, end() if the limit
// does not allow them.
Allocator::Cells::iterator Allocator::map(Cells::iterator cell, int64_t bytes) {
  const int64_t mapped =
      std::min(cell->second.bytes, align_up(bytes, page_bytes(cell->second.region->key.small, settings_)));
  if (checked_add(totals_.reserved_bytes, mapped) > settings_.limit_bytes) return cells_.end();
  delist(cell);
  if (mapped < cell->second.bytes) enlist(cut(cell, mapped));
  cell->second.use = Use::free;
  totals_.reserved_bytes += mapped;
  cell = merge(cell);
  enlist(cell);
  return cell;
}

// First and end of the pages that lie wholly in `cell`, as addresses; equal if there are none.
std::pair<int64_t, int64_t> Allocator::whole_pages(Cells::const_iterator cell) const {
  const Region& region = *cell->second.region;
  if (!region.expandable) return {0, 0};
  const int64_t page = page_bytes(region.key.small, settings_), start = cell->second.segment;
  const int64_t first = start + align_up(cell->first - start, page);
  const int64_t end = start + (cell->first + cell->second.bytes - start) / page * page;
  return {first, std::max(first, end)};
}

// Bytes that a free cell could have without moving, mapped or not.
int64_t Allocator::room_after(Cells::const_iterator cell) const {
  const auto next = std::next(cell);
  const bool grows =
      next != cells_.end() && next->second.segment == cell->second.segment && next->second.use == Use::unmapped;
  return cell->second.bytes + (grows ? next->second.bytes : 0);
}

void Allocator::release_pages(Cells::iterator cell) {
  const auto [first, end] = whole_pages(cell);
  if (first == end) return;
  delist(cell);
  auto pages = cell;
  if (first > cell->first) {
    pages = cut(cell, first - cell->first);
    enlist(cell);
  }
  if (end < pages->first + pages->second.bytes) enlist(cut(pages, end - pages->first));
  pages->second.use = Use::unmapped;
  totals_.reserved_bytes -= end - first;
  enlist(merge(pages));
}

}  // namespace snug
