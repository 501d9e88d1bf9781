#pragma once
// A simulation of PyTorch's CUDA caching allocator (c10/cuda/CUDACachingAllocator.cpp, 2.x): pools by stream and private
// pool, best fit, splitting, merging, cached frees, expandable segments, and the way to out-of-memory: release what is
// cached, try again, fail. It moves no memory. Not simulated: garbage collection, and graph capture's ban on releasing.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "torch/allocator_rules.h"
#include "torch/memory_totals.h"
#include "torch/snapshot.h"

namespace snug {

class Allocator {
 public:
  explicit Allocator(const AllocatorSettings& settings) : settings_(settings) {}

  // Takes over a segment as it lies in a snapshot. Throws Error if its blocks do not fill it or it overlaps another.
  void adopt(const Segment& segment);

  // The address of a new block; nothing if the limit does not allow it, all cached memory released.
  std::optional<int64_t> allocate(int64_t bytes, int64_t stream = 0, PoolId pool = {});

  // Frees at once, or in two steps: requested while another stream uses it, completed later. Throws Error for an address
  // that is not allocated.
  void free(int64_t address);
  void request_free(int64_t address);
  void complete_free(int64_t address);

  // Gives segments that are wholly free back to the device, and whole free pages of expandable ones: empty_cache().
  void release_cached();

  const MemoryTotals& totals() const { return totals_; }
  const AllocatorSettings& settings() const { return settings_; }
  int64_t retries() const { return retries_; }  // num_alloc_retries

  // Bytes of the largest block that could be had without new memory; of the block at `address`, active or not, 0 if none.
  int64_t largest_free_bytes(int64_t stream, PoolId pool, bool small) const;
  int64_t block_bytes(int64_t address) const;

  // Address and bytes of each segment (of an expandable one: of each mapped stretch), by address.
  std::map<int64_t, int64_t> segments() const;

 private:
  struct PoolKey {
    int64_t stream;
    PoolId pool;
    bool small;
    auto operator<=>(const PoolKey&) const = default;
  };
  enum class Use : uint8_t { free, allocated, pending, unmapped };
  struct Cell {  // a block, or address space of an expandable segment without memory
    int64_t bytes = 0, requested_bytes = 0;
    Use use = Use::free;
    int64_t segment = 0;  // where its segment starts
  };
  struct Region {       // a segment
    int64_t bytes = 0;  // address space
    PoolKey key;
    bool expandable = false;
  };
  using Cells = std::map<int64_t, Cell>;
  using FreeSet = std::set<std::pair<int64_t, int64_t>>;  // (bytes, address): best fit is the first that is large enough

  std::optional<int64_t> take_cached(int64_t rounded, const PoolKey& key);
  FreeSet::const_iterator least_room(FreeSet::const_iterator block, const FreeSet& blocks) const;
  std::optional<int64_t> reserve_segment(int64_t rounded, const PoolKey& key);
  std::optional<int64_t> expand(int64_t rounded, const PoolKey& key);
  std::optional<int64_t> reserve(int64_t rounded, const PoolKey& key);
  bool release_oversize(int64_t rounded, const PoolKey& key);
  int64_t hand_out(int64_t address, int64_t rounded, int64_t bytes);

  Cells::iterator find(int64_t address, Use use);
  Cells::iterator cut(Cells::iterator cell, int64_t bytes);
  Cells::iterator merge(Cells::iterator cell);
  bool joins(Cells::const_iterator left, Cells::const_iterator right) const;
  bool fills_region(Cells::const_iterator cell) const;
  void enlist(Cells::const_iterator cell);
  void delist(Cells::const_iterator cell);
  int64_t releasable_bytes(Cells::const_iterator cell) const;
  std::pair<int64_t, int64_t> whole_pages(Cells::const_iterator cell) const;
  int64_t room_after(Cells::const_iterator cell) const;
  Cells::iterator find_room(int64_t rounded, const PoolKey& key);
  Cells::iterator add_room(const PoolKey& key);
  Cells::iterator map(Cells::iterator cell, int64_t bytes);
  void release_region(Cells::iterator cell);
  void release_pages(Cells::iterator cell);
  int64_t new_address(int64_t bytes);

  AllocatorSettings settings_;
  MemoryTotals totals_;
  Cells cells_;
  std::map<int64_t, Region> regions_;
  std::map<PoolKey, FreeSet> free_;
  std::map<PoolKey, std::set<int64_t>> unmapped_;
  int64_t next_address_ = int64_t{1} << 42U;
  int64_t retries_ = 0;
};

}  // namespace snug
