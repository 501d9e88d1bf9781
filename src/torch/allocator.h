#pragma once
// A simulation of PyTorch's CUDA caching allocator (c10/cuda/CUDACachingAllocator.cpp, 2.0 to 2.15): pools by stream and
// private pool, best fit, splitting, merging, cached frees, expandable segments, garbage collection, and the way to
// out-of-memory: release what is cached, try again, fail. It moves no memory. What no snapshot tells its user has to: which
// share of the device is allowed, when graphs are captured, when a private pool's last user goes. Not simulated: pools that
// are never split or that help out (MemPool(no_split=, use_on_oom=)).

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/driver_addresses.h"
#include "torch/address_table.h"
#include "torch/allocator_rules.h"
#include "torch/memory_totals.h"
#include "torch/snapshot.h"

namespace snug {

class Allocator {
 public:
  explicit Allocator(const AllocatorSettings& settings) : settings_(settings) {}
  Allocator(const Allocator&) = delete;  // cells know their segments by address
  Allocator& operator=(const Allocator&) = delete;

  // Takes over a segment as it lies in a snapshot. Throws Error if its blocks do not fill it or it overlaps another.
  void adopt(const Segment& segment);

  // The address of a new block; nothing if the limits do not allow it, all cached memory released.
  std::optional<int64_t> allocate(int64_t bytes, int64_t stream = 0, PoolId pool = {});

  // Frees at once, or in two steps: requested while another stream uses it, completed later. Throws Error for an address
  // that is not allocated.
  void free(int64_t address);
  void request_free(int64_t address);
  void complete_free(int64_t address);

  // Gives segments that are wholly free back to the device, and whole free pages of expandable ones: empty_cache(). It waits
  // for other streams first, which completes frees: completing one of those again is allowed. Private pools that have users
  // keep what they have.
  void release_cached();

  // Between the two nothing cached is released to make room: a graph is being captured, or, until PyTorch 2.10, memory comes
  // from a MemPool.
  void begin_capture() { ++captures_; }
  void end_capture();

  // A private pool has one user from the start, and may have more: graphs and MemPools that share it. Throws Error if it
  // loses more than it has.
  void use_pool(PoolId pool) { ++users_.try_emplace(pool, 1).first->second; }
  void release_pool(PoolId pool);

  // The pool takes its memory from an allocator of the user's, which gives no expandable segments.
  void set_own_allocator(PoolId pool) { own_allocator_.insert(pool); }

  const MemoryTotals& totals() const { return totals_; }
  const AllocatorSettings& settings() const { return settings_; }
  int64_t retries() const { return retries_; }  // num_alloc_retries

  // Bytes of the largest block that could be had without new memory; of the block that was given at `address`, 0 if none.
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
  struct Cell;
  struct FreeBlock {
    int64_t bytes = 0, age = 0, address = 0;  // age: which segment it is of, if older ones are preferred; else 0
    Cell* cell = nullptr;
    bool operator<(const FreeBlock& other) const {
      return std::tie(bytes, age, address) < std::tie(other.bytes, other.age, other.address);
    }
  };
  using FreeSet = std::set<FreeBlock>;  // best fit is the first that is large enough
  struct Pool {
    FreeSet free;
    std::map<int64_t, Cell*> unmapped;  // by address
  };
  struct Region {                    // a segment
    int64_t address = 0, bytes = 0;  // of address space
    PoolKey key;
    bool expandable = false;
    Pool* pool = nullptr;
    int64_t age = 0;
    Cell* first = nullptr;
  };
  struct Cell {  // a block, or address space of an expandable segment without memory
    int64_t address = 0, bytes = 0, requested_bytes = 0;
    Use use = Use::free;
    Region* region = nullptr;                  // its segment
    Cell *before = nullptr, *after = nullptr;  // in it
    FreeSet::iterator listed = {};             // where it is free
    int64_t free_since = 0;                    // searches of the large pool at that time
  };

  Pool& pool_of(const PoolKey& key);
  bool expands(const PoolKey& key) const;
  Cell* take_cached(int64_t rounded, const PoolKey& key);
  FreeSet::const_iterator plain_from(FreeSet::const_iterator block, const FreeSet& blocks) const;
  FreeSet::const_iterator least_room(FreeSet::const_iterator block, const FreeSet& blocks) const;
  Cell* reserve_segment(int64_t rounded, const PoolKey& key);
  Cell* expand(int64_t rounded, const PoolKey& key);
  Cell* reserve(int64_t rounded, const PoolKey& key);
  bool release_oversize(int64_t rounded, const PoolKey& key);
  void collect_garbage();
  bool is_collectable(const Cell* cell) const;
  bool is_releasable(const PoolKey& key) const;
  int64_t hand_out(Cell* cell, int64_t rounded, int64_t bytes);

  Cell* find(int64_t address, Use use);
  void give_back(Cell* cell);
  Cell* cut(Cell* cell, int64_t bytes);
  Cell* merge(Cell* cell);
  bool fills_region(const Cell* cell) const;
  void enlist(Cell* cell);
  void delist(Cell* cell);
  int64_t releasable_bytes(const Cell* cell) const;
  std::pair<int64_t, int64_t> whole_pages(const Cell* cell) const;
  int64_t room_after(const Cell* cell) const;
  Cell* find_room(int64_t rounded, const PoolKey& key);
  Cell* add_room(const PoolKey& key);
  Cell* map(Cell* cell, int64_t bytes);
  void release_region(Cell* cell);
  void release_pages(Cell* cell);
  int64_t new_address(int64_t bytes);
  Region& add_region(int64_t address, int64_t bytes, const PoolKey& key, bool expandable);
  Cell* add_cell(Cell* before, const Cell& cell);
  void remove(Cell* cell);

  AllocatorSettings settings_;
  MemoryTotals totals_;
  std::map<int64_t, Region> regions_;  // by address
  std::deque<Cell> cells_;             // stay where they are
  std::vector<Cell*> unused_;          // of them
  AddressTable<Cell*> given_;          // allocated and pending ones
  std::map<PoolKey, Pool> pools_;
  std::map<PoolKey, Pool>::value_type* recent_[2] = {};  // the small pool and the large one that were asked for last
  std::vector<FreeSet::node_type> spare_;                // of free blocks that were taken: an allocation of the host's less
  DriverAddresses addresses_{int64_t{1} << 30U, int64_t{1} << 46U};
  int64_t regions_made_ = 0, expandable_regions_ = 0;
  int64_t retries_ = 0;
  int64_t captures_ = 0, searches_ = 0;  // searches: of the common large pool, while garbage is collected
  std::map<PoolId, int64_t> users_;      // of private pools; one where there is no entry
  std::set<PoolId> own_allocator_;
  std::set<int64_t> completed_;  // frees that a release completed before their time
};

}  // namespace snug
