#include "explain/contents.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace snug {

namespace {

// Sizes in which weights lie on the device, as far as the snapshot tells.
std::set<int64_t> weight_sizes(const MomentOfFailure& moment) {
  std::set<int64_t> sizes;
  for (const auto& [address, block] : moment.replay.live()) {
    const bool older = block.event == LiveBlock::kBefore;
    if (older || moment.reader.read(block.stack).holding == Holding::weights) sizes.insert(block.requested_bytes);
  }
  return sizes;
}

// Weights that were loaded or made by one line of the program.
class WeightSets {
 public:
  void add(const StackReading& reading, bool older, int64_t bytes) {
    const Frame line = older ? Frame{} : reading.own.value_or(reading.caller.value_or(Frame{}));
    sets_[{line.file, line.line}] += bytes;
  }

  int64_t all() const {
    int64_t sum = 0;
    for (const auto& [line, bytes] : sets_) sum += bytes;
    return sum;
  }

  // Beside the largest set; adapters and what is cast after loading are no second model.
  int64_t beside() const {
    int64_t most = 0, sum = all();
    for (const auto& [line, bytes] : sets_) most = std::max(most, bytes);
    constexpr int64_t kFifth = 5;
    return sum - most >= sum / kFifth ? sum - most : 0;
  }

 private:
  std::map<std::pair<std::string, int64_t>, int64_t> sets_;
};

// The field of `c` that a stack's memory counts in.
int64_t& field_of(Contents& c, const StackReading& reading, bool is_gradient) {
  switch (reading.part) {
    case Part::buckets: return c.buckets;
    case Part::gathered: return c.gathered;
    case Part::cache: return c.cache;
    case Part::collected: return c.collected;
    case Part::copied: return c.copied;
    default: break;
  }
  if (is_gradient || reading.holding == Holding::gradients) return c.gradients;
  if (reading.part == Part::logits) return c.logits;
  if (reading.part == Part::scores) return c.scores;
  switch (reading.holding) {
    case Holding::optimizer: return reading.part == Part::states ? c.states : c.temporaries;
    case Holding::activations: return c.activations;
    case Holding::loss: return c.logits;
    case Holding::backward: return c.temporaries;
    default: return c.other;
  }
}

// A tensor in the size of a weight that no module, optimizer or backward made: a checkpoint's, a copy's.
bool is_copied_weight(const StackReading& reading, const LiveBlock& block, const std::set<int64_t>& weights) {
  constexpr int64_t kLeast = int64_t{64} << 10;
  return reading.holding == Holding::other && reading.part == Part::whole && block.requested_bytes >= kLeast &&
         weights.contains(block.requested_bytes);
}

}  // namespace

Contents contents_at(const MomentOfFailure& moment) {
  const std::set<int64_t> weights = weight_sizes(moment);
  WeightSets sets;
  Contents c;
  for (const auto& [address, block] : moment.replay.live()) {
    const bool older = block.event == LiveBlock::kBefore;
    const StackReading& reading = moment.reader.read(block.stack);
    if (older || (reading.holding == Holding::weights && reading.part == Part::whole)) {
      sets.add(reading, older, block.bytes);
      continue;
    }
    if (is_copied_weight(reading, block, weights)) {
      sets.add(reading, false, block.bytes);
      continue;
    }
    const bool is_gradient = reading.holding == Holding::backward && weights.contains(block.requested_bytes);
    field_of(c, reading, is_gradient) += block.bytes;
  }
  c.second_weights = sets.beside();
  c.weights = sets.all() - c.second_weights;
  return c;
}

Contents asked_at(const MomentOfFailure& moment) {
  Contents asked;
  const StackReading& reading = moment.reading();
  if (reading.holding == Holding::weights) {
    asked.weights = moment.asked_bytes;
  } else {
    const bool is_gradient = reading.holding == Holding::backward && weight_sizes(moment).contains(moment.asked_bytes);
    field_of(asked, reading, is_gradient) += moment.asked_bytes;
  }
  return asked;
}

}  // namespace snug
