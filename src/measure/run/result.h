#pragma once
// What the Python side of a process wrote when it ended.

#include <filesystem>
#include <vector>

#include "measure/run/program.h"

namespace snug {

// Of each rank that process which used the most; by rank. Throws Error for a file that is not what the Python side writes.
std::vector<MeasuredRank> read_results(const std::filesystem::path& directory);

}  // namespace snug
