#pragma once
// Storages, and tensors as views of them. A Storage is bytes with a home, a role and a lifetime; a Tensor is a shape laid
// over one. Liveness and lay-out count Storages only, so tied weights, flat buffers and in-place results cost nothing extra.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/rank_group.h"

namespace snug {

using StorageId = int32_t;
using TensorId = int32_t;
constexpr int32_t kNone = -1;
constexpr int64_t kAlignment = 64;       // bytes; every storage starts on a cache line
constexpr int64_t kFarAlignment = 4096;  // … and away from the device on a page

// Where a storage lies. `pinned`: memory of the host that the device copies from and to by itself.
enum class Home : uint8_t { device, pinned, host, disk };
constexpr int kHomeCount = 4;
constexpr int64_t alignment_of(Home home) { return home == Home::device ? kAlignment : kFarAlignment; }
enum class Role : uint8_t { weight, adapter, gradient, optimizer, activation, temporary, workspace, batch, comm };
constexpr int kRoleCount = 9;
const char* name_of(Role role);
const char* name_of(Home home);

// `run`: from load to save, whatever reads it. `computed`: from its first to its last use in the Program.
enum class Lifetime : uint8_t { run, computed };

// A stretch of a flat buffer that ranks cut among them: so many layers, one after the other, each padded so that every rank
// has as much. Or what there is once, as one layer.
struct Unit {
  int64_t begin = 0;  // bytes, in the whole buffer
  int64_t bytes = 0;  // of one layer, all ranks' parts
  int64_t first_layer = 0, layers = 1;
  bool per_layer = false;
};

struct Storage {
  std::string name;
  int64_t bytes = 0;  // of one instance
  Role role = Role::temporary;
  Home home = Home::device;
  Lifetime lifetime = Lifetime::computed;
  int64_t alignment = kAlignment;       // at least; pages that are copied from and to another home lie on page borders
  int64_t instances = 1;                // one for each layer where blocks keep theirs; folded until lay-out
  std::vector<Unit> units = {};         // of a flat buffer of which each rank updates its part
  int64_t ranks = 1;                    // that hold a part of each unit; `bytes` are one rank's
  RankGroup cut_by = RankGroup::shard;  // … or update one
};
constexpr int64_t alignment_of(const Storage& storage) { return std::max(alignment_of(storage.home), storage.alignment); }

// A dimension: a bound and, if ragged, the scalar that holds the true count at run time.
struct Extent {
  int64_t bound = 0;
  int32_t count = kNone;  // index into the Program's Scalars, kNone: always `bound`

  Extent(int64_t size) : bound(size) {}  // NOLINT(google-explicit-constructor): a plain size is the common extent
  Extent(int64_t size, int32_t counter) : bound(size), count(counter) {}
};

struct Tensor {
  std::string name;
  StorageId storage = kNone;  // kNone until parameters are placed
  DType dtype = DType::f32;
  std::vector<Extent> shape;
  int64_t offset = 0;              // bytes from the start of the storage
  int64_t layer_stride = 0;        // bytes from one layer's view to the next, in flat buffers
  int64_t first_layer = 0;         // whose view lies at `offset`
  int64_t chunk_stride = 0;        // bytes from one chunk's view to the next, in a loop over chunks
  int64_t first_chunk = 0;         // whose view lies at `offset`
  int64_t layer_turns = 0;         // so many views are taken in turn, layer after layer; 0: each layer has its own
  int64_t chunk_turns = 0;         // … and chunk after chunk
  int64_t instance = 0;            // which instance of the storage …
  bool instance_by_layer = false;  // … plus the layer in whose iteration the view is used
  int64_t slots = 1;               // micro-batches that are on their way at once have instances of their own, in turn: …
  int64_t slot_instances = 0;      // … each so many
  int32_t window_of = kNone;       // the far tensor that is seen here: its elements count as they do there
  RankGroup rank_group = RankGroup::shard;  // whose ranks have views apart, of which each sees its own:
  int64_t rank_stride = 0;                  // bytes from one to the next
  int64_t rank_elements = 0;                // likewise of what each holds of a larger whole: elements
  bool spread = false;  // over the ranks that hold its storage: it lies where the whole buffer would have it

  int64_t elements() const {  // of the bound
    int64_t product = 1;
    for (const Extent& extent : shape) product = checked_mul(product, extent.bound);
    return product;
  }
  int64_t bytes() const { return bytes_of(dtype, elements()); }
  int64_t dim(size_t axis) const { return shape[axis].bound; }
};

}  // namespace snug
