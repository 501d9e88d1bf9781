#pragma once
// The optimizer's update ops: of flat buffers or of single weights, with states in the arena or paged from the far home
// through planned windows (as bitsandbytes pages its states, here by reads and writes that the plan knows).

#include <map>
#include <vector>

#include "program/program.h"
#include "recipe/recipe.h"

namespace snug {

// Elements of a paged state that its window holds: a multiple of kStateBlock, so that blocks stay whole.
constexpr int64_t kPagedElements = int64_t{1} << 19;

// The flat buffers of one group of trained weights; or one weight and its views.
struct Trained {
  TensorId parameter = kNone, gradient = kNone;
  std::vector<OptimizerState> states = {};
  bool decays = true;
};

// Makes a Program's update ops and adds them to its regions.
class Updates {
 public:
  // Call when weights are placed.
  Updates(Program& program, const Recipe& recipe);

  // Adds what updates `trained` to `sink`. States in the far home come and go chunk by chunk.
  void add(Region& sink, const Trained& trained);

 private:
  // Whole pages of a chunk: where they lie, the window that they are read into, and the chunk in it as ops see it.
  struct Page {
    TensorId far = kNone, window = kNone, seen = kNone;
  };

  Op update_of(const Trained& trained) const;
  void add_paged(Region& sink, const Op& update, int64_t begin, int64_t length, int64_t count);

  Page page_of(const Tensor& chunk, int64_t turns);

  Program& program_;
  const Recipe& recipe_;
  std::map<StorageId, uint64_t> streams_;  // of the noise of each flat buffer of parameters
};

}  // namespace snug
