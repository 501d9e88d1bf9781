#pragma once
// How many tensors a run's files list: headers and lists of names live outside the arena, some hundred bytes for each
// tensor, which thousands of experts or adapters turn into megabytes. It knows what is stored, not how.

#include <cstdint>

#include "model/model_spec.h"
#include "program/program.h"

namespace snug {

// Of the file or checkpoint that lists the most: the base model's, the trained weights' or the optimizer states'.
int64_t most_file_tensors(const ModelSpec& model, const Program& program);

}  // namespace snug
