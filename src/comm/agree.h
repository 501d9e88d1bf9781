#pragma once
// Small things that ranks tell each other outside of a Program.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace snug {

// Each value becomes its sum over ranks.
void sum_over_ranks(Communicator& ranks, std::span<double> values);
// What each rank gave, in their order.
std::vector<int64_t> all_ranks(Communicator& ranks, int64_t value);
// What the first rank gave.
std::string of_first_rank(Communicator& ranks, const std::string& text);

// What each gave, in their order, however long.
std::vector<std::string> texts_of_ranks(Communicator& ranks, const std::string& text);

}  // namespace snug
