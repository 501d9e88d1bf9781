#pragma once
// How much a plan's data is: tokenized as training would, in a directory that is removed again.

#include <optional>

#include "advise/workload.h"
#include "cli/arguments.h"
#include "data/dataset.h"

namespace snug::cli {

// --examples N --example-tokens M, or the recipe's data; none if neither is given. Throws Error: data without a tokenizer
// beside the model, what tokenizing throws, and counts that make no sense.
std::optional<CountedData> count_data(const Arguments& arguments, const Plan& plan);

}  // namespace snug::cli
