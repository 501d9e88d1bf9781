#pragma once
// The files that this program carries for a run: the null device, the Python side, and the catalogue of models.

#include <filesystem>

namespace snug {

// Writes them below `directory`: lib/, python/, models.txt, and the empty results/. Throws Error.
void write_carried_files(const std::filesystem::path& directory);

}  // namespace snug
