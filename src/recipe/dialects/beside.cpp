#include "recipe/dialects/beside.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace snug::dialects {

std::optional<std::filesystem::path> find_beside(const std::string& recipe, const std::filesystem::path& name, Look look) {
  if (name.empty()) return std::nullopt;
  const std::filesystem::path folder = std::filesystem::path(recipe).parent_path();
  std::vector<std::filesystem::path> places = {folder / name, name};
  std::filesystem::path above = folder;
  for (int up = 0; up < 3 && look != Look::near; ++up) places.push_back((above /= "..") / name);
  if (look == Look::by_last_name) places.push_back(folder / name.filename());
  std::error_code error;
  const auto found = std::ranges::find_if(
      places, [&](const std::filesystem::path& path) { return std::filesystem::is_regular_file(path, error); });
  return found == places.end() ? std::nullopt : std::optional(*found);
}

std::optional<std::string> read_beside(const std::string& recipe, const std::filesystem::path& name, int64_t most_bytes,
                                       Look look) {
  const std::optional<std::filesystem::path> path = find_beside(recipe, name, look);
  if (!path) return std::nullopt;
  try {
    return read_text(*path, most_bytes, 0, "");
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace snug::dialects
