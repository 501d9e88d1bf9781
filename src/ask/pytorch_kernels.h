#pragma once
// Which of Liger's kernels a flag or another trainer's file asks for.

#include "ask/arguments.h"
#include "eager/setup.h"
#include "eager/stack.h"

namespace snug {

// Whether the key of another trainer's file is about Liger.
bool is_about_liger(const ForeignKey& key);

// Throws Error for kernels that the eager model does not cover. `setup`: of all else.
eager::LigerKernels liger_kernels(const Arguments& arguments, const eager::Setup& setup, const eager::StackProfile& stack);

}  // namespace snug
