#include "recipe/dialects/files_below.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/file.h"

namespace snug::dialects {

namespace {

namespace fs = std::filesystem;

bool is_project(const fs::path& folder) {
  constexpr std::array<const char*, 6> kMarks = {".git",      "pyproject.toml", "setup.py", "requirements.txt",
                                                 "README.md", "environment.yml"};
  std::error_code error;
  return std::ranges::any_of(kMarks, [&](const char* mark) { return fs::exists(folder / mark, error); });
}

bool is_another_programs(const std::string& name) {
  constexpr std::array<std::string_view, 6> kOthers = {"node_modules", "site-packages", "venv",
                                                       "env",          "__pycache__",   "tests"};
  return name.starts_with('.') || std::ranges::find(kOthers, name) != kOthers.end();
}

class Search {
 public:
  explicit Search(std::initializer_list<std::string_view> endings) : endings_(endings) {}

  void look_into(const fs::path& folder, int deep) {
    std::vector<fs::path> entries;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end && ++seen_ < kMostEntries;
         entry.increment(error))
      entries.push_back(entry->path());
    std::ranges::sort(entries);
    for (const fs::path& entry : entries)
      if (std::ranges::find(endings_, entry.extension().string()) != endings_.end() && found.size() < kMostFiles)
        take(entry);
    for (const fs::path& entry : entries)
      if (deep > 0 && !is_another_programs(entry.filename().string()) && fs::is_directory(entry, error))
        look_into(entry, deep - 1);
  }

  std::vector<NearbyFile> found;

 private:
  static constexpr size_t kMostFiles = 100;
  static constexpr int kMostEntries = 2000;
  static constexpr int64_t kMostBytes = int64_t{1} << 18;

  void take(const fs::path& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return;
    try {
      found.push_back({path, read_text(path, kMostBytes, 0, "")});
    } catch (const Error&) {  // too large, or not to be read: not one that is looked for
    }
  }

  std::vector<std::string_view> endings_;
  int seen_ = 0;
};

}  // namespace

fs::path project_of(const fs::path& folder) {
  fs::path above = folder;
  for (int up = 0; up < 4; ++up, above /= "..")
    if (is_project(above)) return above;
  return folder;
}

bool is_same_file(const fs::path& one, const fs::path& other) {
  std::error_code error;
  return fs::absolute(one, error).lexically_normal() == fs::absolute(other, error).lexically_normal();
}

std::vector<NearbyFile> files_below(const fs::path& top, std::initializer_list<std::string_view> endings, int deep) {
  Search search(endings);
  search.look_into(top, deep);
  return std::move(search.found);
}

}  // namespace snug::dialects
