#pragma once
// torch.nn.parallel.DistributedDataParallel: every rank has the whole model; what is trained has its gradients a second
// time, in buckets that are summed over ranks.

#include <vector>

#include "eager/optimizer.h"
#include "eager/setup.h"

namespace snug::eager {

// torch/csrc/distributed/c10d/comm.cpp, broadcast_coalesced: 250 MiB at a time, two on the way.
void broadcast_coalesced(Torch& torch, const std::vector<const Tensor*>& tensors);

class DataParallel {
 public:
  // Wraps a model of these parameters: rank 0's are sent to all, and buckets are made.
  DataParallel(Torch& torch, const Setup& setup, const std::vector<Tensor*>& parameters,
               const std::vector<Trained>& trained);

  // A forward pass whose gradients will be summed begins.
  void before_forward();

 private:
  void make_buckets(const std::vector<const Tensor*>& parameters, int64_t first_limit, int64_t limit);

  Torch& t_;
  const Setup& setup_;
  std::vector<const Tensor*> arriving_;  // what is trained, in the order in which gradients come
  Tensors buckets_;
  Tensor used_;
  int passes_ = 0;
};

}  // namespace snug::eager
