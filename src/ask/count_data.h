#pragma once
// What there is to train on, for plans that tell the cost of a run: --examples N --example-tokens M, or the recipe's data.

#include <optional>

#include "advise/workload.h"
#include "ask/arguments.h"

namespace snug {

// None where neither is given. Throws UsageError for one of the flags alone, Error where rows cannot be counted.
std::optional<CountedData> count_data(const Arguments& arguments, const Plan& plan, Asker& asker);

}  // namespace snug
