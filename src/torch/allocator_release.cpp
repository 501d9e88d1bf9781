// How memory goes back to the device: garbage collection, oversize blocks, and all that is cached
// (CUDACachingAllocator.cpp: garbage_collect_cached_blocks, release_available_cached_blocks, release_cached_blocks).
#include <algorithm>
#include <vector>

#include "base/error.h"
#include "torch/allocator.h"

namespace snug {

void Allocator::end_capture() {
  if (captures_ == 0) throw Error("a capture ends that never began", "", "begin it first");
  --captures_;
}

void Allocator::release_pool(PoolId pool) {
  int64_t& users = users_.try_emplace(pool, 1).first->second;
  if (users == 0) throw Error("a pool without users loses one", "", "release it once for each use");
  --users;
}

void Allocator::release_cached() {
  std::vector<int64_t> addresses;
  for (const auto& [begin, region] : regions_)
    for (const Cell* cell = region.first; cell != nullptr; cell = cell->after)
      if (cell->use == Use::pending) addresses.push_back(cell->address);
  for (const int64_t address : addresses) {
    complete_free(address);
    completed_.insert(address);
  }
  std::vector<Cell*> cells;  // none of which another's release takes away
  for (const auto& [key, pool] : pools_) {
    if (!is_releasable(key)) continue;
    for (const FreeBlock& block : pool.free) cells.push_back(block.cell);
  }
  for (Cell* const cell : cells) {
    if (cell->region->expandable) {
      release_pages(cell);
    } else if (fills_region(cell)) {
      release_region(cell);
    }
  }
}

bool Allocator::is_releasable(const PoolKey& key) const {
  if (key.pool == PoolId{}) return true;
  const auto users = users_.find(key.pool);
  return users != users_.end() && users->second == 0;
}

// With a split limit, blocks beyond it are released before all others: the smallest that is large enough, or the largest
// until they are.
bool Allocator::release_oversize(int64_t rounded, const PoolKey& key) {
  if (settings_.max_split_bytes == std::numeric_limits<int64_t>::max()) return false;
  const FreeSet& blocks = pool_of(key).free;
  const int64_t wanted = std::max(rounded, settings_.max_split_bytes);
  auto block = blocks.lower_bound({wanted});
  if (block != blocks.end() && fills_region(block->cell)) {
    release_region(block->cell);
    return true;
  }
  int64_t released = 0;
  while (released < wanted && block != blocks.begin() && std::prev(block)->bytes >= settings_.max_split_bytes) {
    --block;
    Cell* const cell = block->cell;
    if (!fills_region(cell)) continue;  // pages of an expandable segment
    ++block;                            // what stands behind stays in place
    released += cell->bytes;
    release_region(cell);
  }
  return released >= wanted;
}

// Beyond the threshold, segments of the common large pool that nobody has used for longest are given back: those older than
// the mean, over again until enough has come free.
void Allocator::collect_garbage() {
  if (!settings_.allowed_bytes || settings_.garbage_collection_threshold <= 0) return;
  const double share = settings_.garbage_collection_threshold * static_cast<double>(*settings_.allowed_bytes);
  const int64_t wanted = totals_.reserved_bytes - static_cast<int64_t>(share);
  if (wanted <= 0) return;
  std::vector<Cell*> idle;
  int64_t released = 0, ages = 0;
  for (const auto& [begin, region] : regions_)
    for (Cell* cell = region.first; cell != nullptr; cell = cell->after)
      if (is_collectable(cell)) idle.push_back(cell), ages += searches_ - cell->free_since;
  while (released < wanted && !idle.empty()) {
    const double mean = static_cast<double>(ages) / static_cast<double>(idle.size());
    const auto old = std::partition(idle.begin(), idle.end(), [&](const Cell* cell) {
      return static_cast<double>(searches_ - cell->free_since) < mean;
    });
    if (old == idle.end()) break;
    for (auto cell = old; cell != idle.end(); ++cell) {
      released += (*cell)->bytes;
      ages -= searches_ - (*cell)->free_since;
      release_region(*cell);
    }
    idle.erase(old, idle.end());
  }
}

bool Allocator::is_collectable(const Cell* cell) const {
  const PoolKey& key = cell->region->key;
  return cell->use == Use::free && key.pool == PoolId{} && !key.small && fills_region(cell);
}

void Allocator::release_region(Cell* cell) {
  const int64_t address = cell->region->address;
  delist(cell);
  totals_.reserved_bytes -= cell->bytes;
  remove(cell);
  regions_.erase(address);
  addresses_.give_back(address);
}

}  // namespace snug
