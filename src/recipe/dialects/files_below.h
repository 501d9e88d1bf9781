#pragma once
// Files of a recipe's project that no word of it names: those that may read or start it.

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace snug::dialects {

struct NearbyFile {
  std::filesystem::path path;
  std::string text;
};

// Where the project of a folder begins, by a README and its like: at most three folders above; the folder itself where
// nothing tells, lest a neighbour's files be taken for its own.
std::filesystem::path project_of(const std::filesystem::path& folder);

// Those of a folder, then of those below it, `deep` levels down, that end in one of `endings`, in the order of their names:
// at most 100 of at most 256 KiB each. Folders of other programs, of tests and hidden ones are passed over.
std::vector<NearbyFile> files_below(const std::filesystem::path& top, std::initializer_list<std::string_view> endings,
                                    int deep);

// Whether both paths lead to one file, links left aside.
bool is_same_file(const std::filesystem::path& one, const std::filesystem::path& other);

}  // namespace snug::dialects
