#pragma once
// What a PyTorch trainer holds whatever its step does: weights, adapters, gradients and the optimizer's states, of models
// whose step is not modelled too. Tensor by tensor, as the allocator rounds them.

#include "eager/setup.h"
#include "eager/stack.h"
#include "model/model_spec.h"

namespace snug::eager {

struct Held {
  int64_t weights = 0, adapters = 0, gradients = 0, optimizer = 0;
  int64_t bytes() const { return weights + adapters + gradients + optimizer; }
};

// Throws Error where no module has the name of a LoRA target.
Held held_bytes(const ModelSpec& spec, const Setup& setup, const StackProfile& stack);

}  // namespace snug::eager
