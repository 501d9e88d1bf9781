#pragma once
// What optimizers keep and need: torch.optim's foreach and fused loops, bitsandbytes' states in blocks, Adafactor's rows and
// columns. States come with the first step.

#include <vector>

#include "eager/setup.h"
#include "eager/torch_ops.h"

namespace snug::eager {

class Optimizers {
 public:
  Optimizers(Torch& torch, const Setup& setup, std::vector<Tensor*> parameters, const std::vector<bool>& decays);

  void step();

 private:
  void make_states(Tensor& parameter, Tensors& states);
  void step_adamw(const std::vector<size_t>& group);

  Torch& t_;
  const Setup& setup_;
  std::vector<Tensor*> parameters_;
  std::vector<std::vector<size_t>> groups_;
  std::vector<Tensors> states_;
};

}  // namespace snug::eager
