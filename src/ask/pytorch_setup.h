#pragma once
// How PyTorch's trainers run a recipe: the words of another trainer's file and of flags that no key of a recipe says, and
// the habits of the trainer itself.

#include "ask/arguments.h"
#include "eager/setup.h"
#include "eager/stack.h"
#include "model/model_spec.h"

namespace snug {

// Whether the recipe's key was given by file or flag.
bool sets(const Arguments& arguments, const char* key);

// Whether the key of another trainer's file asks for something.
bool is_on(const ForeignKey& key);

// Whether the eager model follows a key that snug's own plan does not.
bool is_told_to_pytorch(const ForeignKey& key);

// `recipe`: that of the arguments, or a change of it. Throws Error for what the eager model does not cover, UsageError for
// words that mean nothing.
eager::Setup pytorch_setup(const Arguments& arguments, const Recipe& recipe, const ModelSpec& model,
                           const eager::StackProfile& stack);

// Whether autocast is assumed because nobody said anything of precision.
bool assumes_autocast(const Arguments& arguments);

}  // namespace snug
