#pragma once
// A recipe as the Hugging Face trainer would run it: bf16 and fp16 are autocast there, weights keep the dtype that they are
// loaded in. What a Recipe does not say (attention's kernel, the kind of checkpoint, preparation for k-bit training) has its
// trainer's default.

#include "eager/setup.h"
#include "eager/stack.h"
#include "model/model_spec.h"
#include "recipe/recipe.h"

namespace snug::eager {

// Throws Error for an optimizer that PyTorch's trainers do not have.
// Programs but transformers' take bf16 and fp16 as the dtype of the weights.
Setup setup_of(const Recipe& recipe, const ModelSpec& spec, const StackProfile& stack,
               Program program = Program::transformers);

}  // namespace snug::eager
