#include "recipe/dialects/beside.h"

#include "base/error.h"
#include "base/file.h"

namespace snug::dialects {

std::optional<std::filesystem::path> find_beside(const std::string& recipe, const std::filesystem::path& name,
                                                 bool by_last_name) {
  if (name.empty()) return std::nullopt;
  const std::filesystem::path folder = std::filesystem::path(recipe).parent_path();
  const std::filesystem::path above = "..";
  std::error_code error;
  for (const std::filesystem::path& path :
       {folder / name, name, folder / above / name, folder / above / above / name, folder / above / above / above / name,
        by_last_name ? folder / name.filename() : name})
    if (std::filesystem::is_regular_file(path, error)) return path;
  return std::nullopt;
}

std::optional<std::string> read_beside(const std::string& recipe, const std::filesystem::path& name, int64_t most_bytes,
                                       bool by_last_name) {
  const std::optional<std::filesystem::path> path = find_beside(recipe, name, by_last_name);
  if (!path) return std::nullopt;
  try {
    return read_text(*path, most_bytes, 0, "");
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace snug::dialects
