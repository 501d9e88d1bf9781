// Expandable segments: much address space for each pool, memory mapped into it page by page where it is needed first
// (CUDACachingAllocator.cpp: find_expandable_block, try_allocate_expandable_block, map_block, unmap_block).
#include <algorithm>

#include "base/checked.h"
#include "torch/allocator.h"

namespace snug {
namespace {

constexpr int64_t kRoom = int64_t{1} << 41U;  // bytes of address space; PyTorch takes 9/8 of the device

}  // namespace

Allocator::Cell* Allocator::expand(int64_t rounded, const PoolKey& key) {
  Cell* cell = find_room(rounded, key);
  if (cell == nullptr) return nullptr;
  if (cell->use == Use::unmapped) cell = map(cell, std::min(cell->bytes, rounded));
  while (cell != nullptr && cell->bytes < rounded)  // free, and what follows is unmapped
    cell = map(cell->after, std::min(cell->after->bytes, rounded - cell->bytes));
  return cell;
}

// The lowest free or unmapped cell that starts enough such space; new address space if there is none.
Allocator::Cell* Allocator::find_room(int64_t rounded, const PoolKey& key) {
  for (const auto& [address, unmapped] : pool_of(key).unmapped) {
    Cell* const before = unmapped->before;
    Cell* const cell = before != nullptr && before->use == Use::free ? before : unmapped;
    int64_t room = 0;
    for (const Cell* at = cell; room < rounded && at != nullptr && (at->use == Use::free || at->use == Use::unmapped);
         at = at->after)
      room += at->bytes;
    if (room >= rounded) return cell;
  }
  return rounded <= kRoom ? add_room(key) : nullptr;
}

Allocator::Cell* Allocator::add_room(const PoolKey& key) {
  const int64_t page = page_bytes(key.small, settings_);
  const int64_t bytes = align_up(kRoom, page);
  const int64_t address = new_address(bytes);
  Cell* const cell = add_cell(nullptr, {address, bytes, 0, Use::unmapped, &add_region(address, bytes, key, true)});
  enlist(cell);
  return cell;
}

// Maps the pages that hold the first `bytes` of an unmapped cell; the free cell that they then belong to, none if the limit
// does not allow them.
Allocator::Cell* Allocator::map(Cell* cell, int64_t bytes) {
  const int64_t mapped = std::min(cell->bytes, align_up(bytes, page_bytes(cell->region->key.small, settings_)));
  if (checked_add(totals_.reserved_bytes, mapped) > settings_.limit_bytes) return nullptr;
  delist(cell);
  if (mapped < cell->bytes) enlist(cut(cell, mapped));
  cell->use = Use::free;
  totals_.reserved_bytes += mapped;
  cell = merge(cell);
  enlist(cell);
  return cell;
}

// First and end of the pages that lie wholly in `cell`, as addresses; equal if there are none.
std::pair<int64_t, int64_t> Allocator::whole_pages(const Cell* cell) const {
  const Region& region = *cell->region;
  if (!region.expandable) return {0, 0};
  const int64_t page = page_bytes(region.key.small, settings_), start = region.address;
  const int64_t first = start + align_up(cell->address - start, page);
  const int64_t end = start + (cell->address + cell->bytes - start) / page * page;
  return {first, std::max(first, end)};
}

// Bytes that a free cell could have without moving, mapped or not.
int64_t Allocator::room_after(const Cell* cell) const {
  const Cell* const next = cell->after;
  return cell->bytes + (next != nullptr && next->use == Use::unmapped ? next->bytes : 0);
}

void Allocator::release_pages(Cell* cell) {
  const auto [first, end] = whole_pages(cell);
  if (first == end) return;
  delist(cell);
  Cell* pages = cell;
  if (first > cell->address) {
    pages = cut(cell, first - cell->address);
    enlist(cell);
  }
  if (end < pages->address + pages->bytes) enlist(cut(pages, end - pages->address));
  pages->use = Use::unmapped;
  totals_.reserved_bytes -= end - first;
  enlist(merge(pages));
}

}  // namespace snug
