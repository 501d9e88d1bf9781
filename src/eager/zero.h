#pragma once
// DeepSpeed's stages 1 and 2 (deepspeed/runtime/zero/stage_1_and_2.py): every rank has the weights in 16 bits, flat; each
// keeps its partition of them in 32 bits with the optimizer's states. Gradients go through a bucket of a fixed size and stay
// where their rank keeps them: stage 2 as soon as they come, stage 1 after the last micro-batch.

#include <functional>
#include <vector>

#include "eager/optimizer.h"
#include "eager/setup.h"

namespace snug::eager {

class ZeroOptimizer {
 public:
  ZeroOptimizer(Torch& torch, const Setup& setup) : t_(torch), setup_(setup) {}

  // DeepSpeed's engine and optimizer around a model that is on the host: `parameters` go to the device, `trained` are laid
  // into one tensor a group.
  void wrap(const std::vector<Tensor*>& parameters, const std::vector<Trained>& trained);

  // This rank's partitions for the optimizer, each of them a group of its own.
  std::vector<Trained> partitions();

  // Around a micro-batch's backward; `last` of a step.
  void begin_backward(bool last) { last_ = last; }
  void end_backward();
  // The update of each group; `begin` is called before it.
  void step(Optimizers& optimizer, const std::function<void()>& begin);

 private:
  struct Parameter {
    Tensor* tensor = nullptr;
    bool kept = false;                  // this rank keeps its gradient
    int64_t offset = 0, partition = 0;  // where in its group it begins; elements of a partition there
    int64_t own = 0;                    // elements in this rank's partition
  };
  struct Group {
    std::vector<Parameter> parameters;
    Tensor flat, master;  // all of it in 16 bits; this rank's partition in 32
    int64_t partition = 0;
  };
  void make_group(const std::vector<Trained>& trained, bool decays);
  void lay_flat(Group& group);
  void arrive(Parameter& parameter);
  void take(Parameter& parameter);
  void average();
  void reduce();

  Torch& t_;
  const Setup& setup_;
  std::vector<Group> groups_;
  Tensor buckets_[2];   // gradients on their way to the ranks that keep them
  size_t filling_ = 0;  // of the two
  std::vector<Parameter*> in_bucket_;
  int64_t elements_ = 0;  // in it
  bool last_ = true;
  Tensor kept_, accumulated_;  // gradients of this rank; of micro-batches before
};

}  // namespace snug::eager
