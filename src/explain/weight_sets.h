#pragma once
// Weights on the device told apart by the line that loaded or made them, by the sizes of their tensors: what is a second
// set, whether it is a copy of the first, how much of the copy is still to come, and how many layers there are.

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "explain/stack_reading.h"
#include "torch/replay.h"

namespace snug {

class WeightSets {
 public:
  // `older`: than the trace. `copied`: a tensor of that size that no module made, of a state dict.
  void add(const StackReading& reading, bool older, bool copied, const LiveBlock& block);
  // Of what is written, which is no set of its own.
  void add_written(const LiveBlock& block);

  int64_t bytes() const;  // of all sets
  // Of all but the largest. `small`: of a set that is less than a fifth of all too; else adapters and what is cast after
  // loading are no set.
  int64_t second_bytes(bool small) const;
  // What is still to come of a copy of the largest set, if that is what the other sets and what is written are: not what a
  // copy passes over (buffers), but tied weights twice where it goes by the names of a state dict and is not `deep`
  // (copy.deepcopy). -1 if they are no copy of it.
  int64_t bytes_left(bool deep) const;

  // Matrices of one size come once in every layer, or several times; the embedding and the head come once. 0: not told.
  int64_t layers() const;
  int64_t largest_of_layer() const;
  // The embedding that is the head too: of those of no layer the largest, if there is but one of its size; else 0.
  int64_t tied_bytes() const;

 private:
  using Sizes = std::map<int64_t, int64_t>;  // as asked for: how many there are
  struct Set {
    int64_t bytes = 0;
    bool copied = false;
    Sizes sizes;
  };

  const Set& largest() const;
  std::pair<Sizes, bool> copies() const;  // and whether tensors of a state dict are among them

  std::map<std::pair<std::string, int64_t>, Set> sets_;
  Sizes written_;
};

}  // namespace snug
