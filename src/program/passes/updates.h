#pragma once
// The optimizer's update ops: of flat buffers or of single weights.

#include <map>
#include <vector>

#include "program/program.h"
#include "recipe/recipe.h"

namespace snug {

// The flat buffers of one group of trained weights; or one weight and its views.
struct Trained {
  TensorId parameter = kNone, gradient = kNone;
  std::vector<OptimizerState> states = {};
  bool decays = true;
  bool counts = true;  // to the norm of all gradients
};

// Makes a Program's update ops and adds them to its regions.
class Updates {
 public:
  // Call when weights are placed.
  Updates(Program& program, const Recipe& recipe);

  // Adds what updates `trained` to `sink`. What lies far comes and goes chunk by chunk.
  void add(Region& sink, const Trained& trained);

 private:
  Op update_of(const Trained& trained) const;

  Program& program_;
  const Recipe& recipe_;
  std::map<StorageId, uint64_t> streams_;  // of the noise of each flat buffer of parameters
};

}  // namespace snug
