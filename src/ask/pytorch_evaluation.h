#pragma once
// Evaluation between the steps of a PyTorch run: what flags, the recipe and another trainer's file say of it, and what its
// trainer does where they are silent.

#include "ask/arguments.h"
#include "eager/setup.h"
#include "eager/stack.h"

namespace snug {

// `setup`: all else of the run. No rows where nothing is evaluated, or by a loop that is not transformers' Trainer. Throws
// UsageError for flags that make no sense.
eager::Evaluation pytorch_evaluation(const Arguments& arguments, const Recipe& recipe, const eager::Setup& setup,
                                     const eager::StackProfile& stack);

// Whether a key of another trainer's file is about this alone.
bool is_about_evaluation(const ForeignKey& key);

}  // namespace snug
