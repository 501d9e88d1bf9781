#include "plan/support_unfold.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace snug::testing {

namespace {

struct Use {
  int64_t time, loop, iteration;
  int64_t chunks, chunk;  // which loop over chunks, and whose turn it is; -1: none
};

struct Unfolding {
  const Program& program;
  int64_t time = 0, loops = 0, loop = -1, iteration = 0, layer = 0;
  int64_t chunks = -1, chunk = -1;
  std::map<std::pair<StorageId, int64_t>, std::vector<Use>> uses;

  void region(const Region& r) {
    if (r.axis == Axis::chunk && loop != -1) return tiles(r);
    if (r.axis != Axis::layer) return body(r);
    loop = loops++;
    for (iteration = 0; iteration < r.count; ++iteration) {
      layer = r.reverse ? r.first + r.count - 1 - iteration : r.first + iteration;
      body(r);
    }
    loop = -1;
    iteration = 0;
  }

  void tiles(const Region& r) {
    const int64_t first = time;
    for (chunk = 0; chunk < r.count; ++chunk) {
      chunks = loops + first;  // of this layer alone
      body(r);
    }
    chunks = chunk = -1;
  }

  void body(const Region& r) {
    for (const Item& item : r.items) {
      if (const Region* child = item.region()) region(*child);
      if (const Op* op = item.op()) {
        for (const Operand& operand : op->operands) {
          const Tensor& tensor = program.tensor(operand.tensor);
          if (program.storage(tensor.storage).lifetime == Lifetime::run) continue;
          const int64_t instance = tensor.instance + (tensor.instance_by_layer ? layer : 0);
          uses[{tensor.storage, instance}].push_back({time, loop, iteration, chunks, chunk});
        }
        ++time;
      }
    }
  }
};

// In each iteration.
bool only_one_loop_of_chunks(const std::vector<Use>& uses) {
  std::map<int64_t, int64_t> by_iteration;
  return std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
    return by_iteration.try_emplace(use.iteration, use.chunks).first->second == use.chunks;
  });
}

}  // namespace

std::vector<UnfoldedLife> unfold(const Program& program) {
  Unfolding walk{program};
  walk.region(program.root);
  std::vector<UnfoldedLife> lives;
  for (const auto& [key, uses] : walk.uses) {
    const Storage& storage = program.storage(key.first);
    const auto loop = uses.front().loop;
    const bool one_loop = std::all_of(uses.begin(), uses.end(), [loop](const Use& u) { return u.loop == loop; });
    if (storage.instances == 1 && one_loop && loop != -1) {  // a temporary of each iteration
      std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>> by_iteration;
      const bool one_tile = std::all_of(uses.begin(), uses.end(), [](const Use& u) { return u.chunks != -1; }) &&
                            only_one_loop_of_chunks(uses);
      for (const Use& use : uses) {
        auto [entry, fresh] = by_iteration.try_emplace({use.iteration, one_tile ? use.chunk : -1}, use.time, use.time);
        entry->second.second = use.time;
      }
      for (const auto& [iteration, range] : by_iteration)
        lives.push_back({key.first, key.second, range.first, range.second, storage.bytes});
    } else {
      lives.push_back({key.first, key.second, uses.front().time, uses.back().time, storage.bytes});
    }
  }
  return lives;
}

int64_t peak_of(const std::vector<UnfoldedLife>& lives) {
  std::map<int64_t, int64_t> change;
  for (const UnfoldedLife& life : lives) {
    change[life.birth] += life.bytes;
    change[life.death + 1] -= life.bytes;
  }
  int64_t live = 0, peak = 0;
  for (const auto& [time, delta] : change) peak = std::max(peak, live += delta);
  return peak;
}

}  // namespace snug::testing
