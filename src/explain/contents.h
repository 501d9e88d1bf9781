#pragma once
// What live memory is for at one moment of a replay, told by stacks and sizes: a set of weights is what one line loaded, a
// gradient is what backward made in the size of a weight, and what else backward made is on its way through.

#include <cstdint>

#include "explain/stack_reading.h"
#include "torch/replay.h"

namespace snug {

// A replay that stands at an event where a request failed.
struct MomentOfFailure {
  const Snapshot& snapshot;
  const Replay& replay;
  StackReader& reader;
  size_t event = 0;
  int64_t asked_bytes = 0;

  const StackReading& reading() const { return reader.read(snapshot.event(replay.device(), event).stack); }
};

// Bytes of blocks.
struct Contents {
  int64_t weights = 0, second_weights = 0, gradients = 0, states = 0, temporaries = 0, activations = 0, logits = 0,
          scores = 0, cache = 0, buckets = 0, gathered = 0, collected = 0, copied = 0, other = 0;

  int64_t copies_left = -1;      // of a copy of the weights, still to come; -1: nothing is a copy of them
  int64_t layers = 0;            // of the model, as its weights' sizes come again; 0 where they do not tell
  int64_t largest_of_layer = 0;  // weight
  int64_t tied_bytes = 0;        // of the embedding, if it is the head too

  int64_t dynamic() const { return activations + logits + scores + temporaries; }  // goes with the rows of a batch
};

Contents contents_at(const MomentOfFailure& moment);

// What the request that failed was for, in the same terms: its bytes count in one field alone.
Contents asked_at(const MomentOfFailure& moment);

}  // namespace snug
