#pragma once
// Files that a recipe names: settings that it hands on, scripts that it sources or starts, modules that it imports.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace snug::dialects {

// Where it lies: beside the recipe, in the working directory, in one of the three folders above the recipe (scripts are
// started from a project's root), or, where `by_last_name`, by the end of its path alone beside it.
std::optional<std::filesystem::path> find_beside(const std::string& recipe, const std::filesystem::path& name,
                                                 bool by_last_name = true);

// What it holds; none where there is no such file, or it cannot be read, or is larger than `most_bytes`.
std::optional<std::string> read_beside(const std::string& recipe, const std::filesystem::path& name, int64_t most_bytes,
                                       bool by_last_name = true);

}  // namespace snug::dialects
