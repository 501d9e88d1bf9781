#pragma once
// The answer for a model whose step is not modelled: what a trainer on PyTorch holds in any case.

#include "ask/arguments.h"
#include "model/model_spec.h"

namespace snug {

// Prints it. The exit code: 3 if that alone does not fit; 1 otherwise, since nobody knows.
int plan_held(const Arguments& arguments, const ModelSpec& model, Asker& asker);

}  // namespace snug
