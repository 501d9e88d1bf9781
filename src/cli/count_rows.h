#pragma once
// Rows and tokens of a plan's data file, by the model's tokenizer: what training on it will see.

#include "advise/workload.h"

namespace snug::cli {

// Tokenizes all of it, in a process of its own, and keeps nothing. Throws Error.
CountedData count_rows(const Plan& plan);

}  // namespace snug::cli
