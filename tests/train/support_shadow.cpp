#include "train/support_shadow.h"
#include "run/in_place.h"

#include <algorithm>
#include <cstring>

namespace snug::testing {

namespace {
constexpr int kPoison = 0xFF;  // NaN in every floating dtype, -1 in every integer one
constexpr std::byte kZone{0xA5};
}  // namespace

Shadow::Shadow(Executor& executor, int64_t red_zone) : executor_(executor), red_zone_(red_zone) {
  number(executor.program().root, 0, false, 0);
  for (const UnfoldedLife& life : unfold(executor.program())) {
    if (executor.program().storage(life.storage).home != Home::device) continue;  // not in the arena
    births_.emplace(life.birth, life);
    deaths_.emplace(life.death, life);
  }
  written_.resize(static_cast<size_t>(executor.layout().device().bytes));
  std::memset(InPlace::arena(executor), kPoison, static_cast<size_t>(executor.arena_bytes()));
  for (size_t id = 0; id < executor.program().storages.size(); ++id)
    if (lives_throughout(id)) birth(static_cast<StorageId>(id), 0);
}

// The same order as unfold(): every layer of a loop in turn and every chunk in it, a micro-batch once.
void Shadow::number(const Region& region, int64_t layer, bool in_layers, int64_t chunk) {
  const bool layers = region.axis == Axis::layer, chunks = in_layers && region.axis == Axis::chunk;
  for (int64_t iteration = 0; iteration < (layers || chunks ? region.count : 1); ++iteration) {
    if (layers) layer = region.layer_of(iteration);
    if (chunks) chunk = iteration;
    for (const Item& item : region.items) {
      if (const Region* child = item.region()) number(*child, layer, in_layers || layers, chunk);
      if (const Op* op = item.op()) times_[{op, layer, chunk}] = clock_++;
    }
  }
}

bool Shadow::lives_throughout(size_t id) const {
  const Storage& storage = executor_.program().storages[id];
  return storage.lifetime == Lifetime::run && storage.home == Home::device;
}

int64_t Shadow::time_of(const Op& op, const Binding& binding) const {
  const auto found = times_.find({&op, binding.layer, binding.chunk});
  return found != times_.end() ? found->second : times_.at({&op, binding.layer, 0});  // a chunk outside of layers
}

std::byte* Shadow::begin_of(StorageId storage, int64_t instance) const {
  return InPlace::arena(executor_) + executor_.layout().offset_of(storage, instance);
}

void Shadow::birth(StorageId storage, int64_t instance) {
  const auto bytes = static_cast<size_t>(executor_.program().storage(storage).bytes);
  std::memset(begin_of(storage, instance), kPoison, bytes);
  std::fill_n(begin_of(storage, instance) + align_up(static_cast<int64_t>(bytes), kAlignment), red_zone_, kZone);
}

// Eight bytes at a time: of what a byte differs from the poison in, any bit is carried into its highest.
void Shadow::note_written(StorageId storage, int64_t instance) {
  constexpr uint64_t kLow = 0x7F7F'7F7F'7F7F'7F7F;
  const std::byte* begin = begin_of(storage, instance);
  std::byte* noted = written_.data() + (begin - InPlace::arena(executor_));
  const auto bytes = static_cast<size_t>(executor_.program().storage(storage).bytes);
  for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
    const size_t count = std::min(bytes - i, sizeof(uint64_t));
    uint64_t found = ~uint64_t{0}, seen = 0;
    std::memcpy(&found, begin + i, count);
    std::memcpy(&seen, noted + i, count);
    const uint64_t differs = ~found;
    seen |= (((differs & kLow) + kLow) | differs) & ~kLow;
    std::memcpy(noted + i, &seen, count);
  }
}

void Shadow::death(StorageId storage, int64_t instance) {
  note_written(storage, instance);
  const int64_t bytes = executor_.program().storage(storage).bytes;
  const std::byte* zone = begin_of(storage, instance) + align_up(bytes, kAlignment);
  ++zones_checked_;
  zones_touched_ += std::all_of(zone, zone + red_zone_, [](std::byte b) { return b == kZone; }) ? 0 : 1;
  std::memset(begin_of(storage, instance), kPoison, static_cast<size_t>(bytes));
}

void Shadow::before(const Op& op, const Binding& binding) {
  const auto [first, last] = births_.equal_range(time_of(op, binding));
  for (auto it = first; it != last; ++it) birth(it->second.storage, it->second.instance);
}

void Shadow::after(const Op& op, const Binding& binding) {
  const auto [first, last] = deaths_.equal_range(time_of(op, binding));
  for (auto it = first; it != last; ++it) death(it->second.storage, it->second.instance);
}

double Shadow::written_share() {
  for (size_t id = 0; id < executor_.program().storages.size(); ++id) {
    if (!lives_throughout(id)) continue;
    const auto storage = static_cast<StorageId>(id);
    note_written(storage, 0);
    const std::byte* zone = begin_of(storage, 0) + align_up(executor_.program().storages[id].bytes, kAlignment);
    ++zones_checked_;
    zones_touched_ += std::all_of(zone, zone + red_zone_, [](std::byte b) { return b == kZone; }) ? 0 : 1;
  }
  const auto unwritten = std::count(written_.begin(), written_.end(), std::byte{0});
  return 1 - static_cast<double>(unwritten) / static_cast<double>(written_.size());
}

}  // namespace snug::testing
