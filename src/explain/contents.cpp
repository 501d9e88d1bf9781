#include "explain/contents.h"

#include <algorithm>
#include <set>

#include "explain/weight_sets.h"

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

bool copies_deeply(const MomentOfFailure& moment) {
  const Snapshot& snapshot = moment.snapshot;
  const StackId stack = snapshot.event(moment.replay.device(), moment.event).stack;
  return std::ranges::any_of(snapshot.stacks.frames(stack),
                             [&](FrameId id) { return snapshot.texts[snapshot.stacks.frame(id).function] == "deepcopy"; });
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
      sets.add(reading, older, false, block);
      continue;
    }
    if (is_copied_weight(reading, block, weights)) {
      sets.add(reading, false, true, block);
      continue;
    }
    const bool is_gradient = reading.holding == Holding::backward && weights.contains(block.requested_bytes);
    int64_t& field = field_of(c, reading, is_gradient);
    field += block.bytes;
    if (&field == &c.copied) sets.add_written(block);
  }
  const bool after_a_step = c.states + c.gradients > 0;  // what is loaded then is another model
  c.second_weights = sets.second_bytes(after_a_step);
  c.weights = sets.bytes() - c.second_weights;
  if (c.second_weights + c.copied > 0) c.copies_left = sets.bytes_left(copies_deeply(moment));
  c.layers = sets.layers();
  c.tied_bytes = sets.tied_bytes();
  c.largest_of_layer = sets.largest_of_layer();
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
