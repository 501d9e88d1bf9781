#pragma once
// Where a run begins.

#include <filesystem>
#include <optional>

#include "train/trainer.h"

namespace snug {

// The checkpoint that it goes on from; none: it starts anew. A directory that holds a run is resumed or overwritten on
// purpose only: throws Error. What a killed run has left half-written is removed.
std::optional<std::filesystem::path> choose_start(const Recipe& recipe, Reporter& reporter);

}  // namespace snug
