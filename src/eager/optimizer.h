#pragma once
// What optimizers keep and need: torch.optim's foreach and fused loops, bitsandbytes' states in blocks, Adafactor's rows and
// columns. States come with the first step.

#include <functional>
#include <vector>

#include "eager/setup.h"
#include "eager/torch_ops.h"

namespace snug::eager {

// A trained tensor as the optimizer sees it. `columns`: of its last dimension; 0: it has one dimension only.
struct Trained {
  Tensor* tensor = nullptr;
  int64_t columns = 0;
  bool decays = true;
  bool is_embedding = false;
};

class Optimizers {
 public:
  // `apart`: each parameter is a group of its own.
  Optimizers(Torch& torch, const Setup& setup, std::vector<Trained> parameters, bool apart = false);

  void step();
  // Of one group alone: those that decay, those that do not, or the parameter of that number.
  void step(size_t number);
  // DeepSpeed's update of a partition (stage_1_and_2.py, stage3.py: step): its gradients are laid flat in `narrow`, widened,
  // and the states brought up to date; `begin` is called before that.
  void step_partition(size_t number, DType narrow, const std::function<void()>& begin);

 private:
  void step_adamw(const std::vector<size_t>& group);
  void step_fused(const std::vector<size_t>& group);
  void step_bitsandbytes(size_t index, int states, bool narrow, bool paged);
  void step_adafactor(size_t index);
  Tensor state_of(int64_t count, DType dtype, bool paged);

  Torch& t_;
  const Setup& setup_;
  std::vector<Trained> parameters_;
  std::vector<std::vector<size_t>> groups_;
  std::vector<Tensors> states_;
  Tensors maps_;                               // bitsandbytes: code books of 8-bit states
  Tensor gradient_, wide_parameter_, update_;  // Adafactor's locals, which outlive a parameter's turn
};

}  // namespace snug::eager
