#pragma once
// Files that a recipe names: settings that it hands on, scripts that it sources or starts, modules that it imports.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace snug::dialects {

// How far to look: beside the recipe and in the working directory; in the three folders above the recipe too (scripts are
// started from a project's root); and by the end of the path alone beside it.
enum class Look : uint8_t { near, above, by_last_name };

std::optional<std::filesystem::path> find_beside(const std::string& recipe, const std::filesystem::path& name, Look look);

// What it holds; none where there is no such file, or it cannot be read, or is larger than `most_bytes`.
std::optional<std::string> read_beside(const std::string& recipe, const std::filesystem::path& name, int64_t most_bytes,
                                       Look look = Look::by_last_name);

}  // namespace snug::dialects
