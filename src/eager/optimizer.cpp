#include "eager/optimizer.h"

namespace snug::eager {

// transformers/trainer.py create_optimizer: those that decay, those that do not.
Optimizers::Optimizers(Torch& torch, const Setup& setup, std::vector<Tensor*> parameters, const std::vector<bool>& decays)
    : t_(torch), setup_(setup), parameters_(std::move(parameters)), groups_(2), states_(parameters_.size()) {
  for (size_t i = 0; i < parameters_.size(); ++i) groups_[decays[i] ? 0 : 1].push_back(i);
}

void Optimizers::make_states(Tensor& parameter, Tensors& states) {
  if (!states.empty()) return;
  states.push_back(t_.empty(parameter.count, parameter.dtype, Role::optimizer));
  states.push_back(t_.empty(parameter.count, parameter.dtype, Role::optimizer));
}

void Optimizers::step() {
  for (const auto& group : groups_) step_adamw(group);
}

// torch/optim/adamw.py: _multi_tensor_adamw
void Optimizers::step_adamw(const std::vector<size_t>& group) {
  for (const size_t i : group) make_states(*parameters_[i], states_[i]);
  Tensors roots;
  for (const size_t i : group) roots.push_back(t_.empty(parameters_[i]->count, parameters_[i]->dtype));
}

}  // namespace snug::eager
