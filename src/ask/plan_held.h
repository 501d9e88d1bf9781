#pragma once
// The answer for a model whose step snug's own engine does not have: what PyTorch takes, where that is known, or what a
// trainer on it holds in any case.

#include "ask/arguments.h"
#include "model/model_spec.h"

namespace snug {

// Prints it. The exit code: 0 or 3 where it is known whether it fits; else 3 if what is held alone does not, 1 if nobody
// knows.
int plan_held(const Arguments& arguments, const ModelSpec& model, Asker& asker);

}  // namespace snug
