// Which files a path means.

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.h"
#include "base/quote.h"
#include "data/row_source.h"

namespace snug {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kEndings = {".jsonl",    ".ndjson",    ".json",   ".parquet",
                                                      ".jsonl.gz", ".jsonl.zst", ".json.gz"};
// What `datasets` puts beside the data.
constexpr std::array<std::string_view, 4> kNoData = {"dataset_info.json", "dataset_infos.json", "state.json",
                                                     "dataset_dict.json"};

std::string_view ending_of(std::string_view name) {
  const auto found = std::ranges::find_if(kEndings, [&](std::string_view ending) { return name.ends_with(ending); });
  return found == kEndings.end() ? std::string_view() : *found;
}

bool is_data(const std::string& name) {
  if (name.starts_with('.') || name.starts_with('_')) return false;
  return std::ranges::find(kNoData, name) == kNoData.end() && !ending_of(name).empty();
}

// What a name says of its place among others: "train-00001-of-00003.parquet" is part 1 of 3 of "train".
struct PartName {
  std::string stem;
  int64_t part = -1, parts = 0;
};

PartName part_of(const std::string& name) {
  PartName result{name.substr(0, name.size() - ending_of(name).size())};
  constexpr size_t kDigits = 5;
  constexpr size_t kTail = kDigits + 4 + kDigits;  // 00001-of-00003
  if (result.stem.size() < kTail + 1) return result;
  const std::string tail = result.stem.substr(result.stem.size() - kTail);
  const auto number = [&](size_t from) {
    int64_t value = 0;
    for (const char c : tail.substr(from, kDigits)) {
      if (c < '0' || c > '9') return int64_t{-1};
      value = value * 10 + (c - '0');
    }
    return value;
  };
  if (tail.substr(kDigits, 4) != "-of-" || number(0) < 0 || number(kDigits + 4) < 0) return result;
  result.part = number(0);
  result.parts = number(kDigits + 4);
  result.stem.resize(result.stem.size() - kTail - 1);
  return result;
}

// A directory may hold the splits of a dataset, which nobody wants to train on together unawares.
void refuse_splits(const std::vector<fs::path>& files, const fs::path& data) {
  constexpr std::array<std::string_view, 6> kOthers = {"test", "valid", "validation", "eval", "dev", "val"};
  std::string train;
  std::string other;
  for (const fs::path& file : files) {
    const std::string stem = part_of(file.filename().string()).stem;
    const std::string first = stem.substr(0, stem.find_first_of("-_."));
    (std::ranges::find(kOthers, first) != kOthers.end() ? other : train) = file.filename().string();
  }
  if (train.empty() || other.empty()) return;
  throw Error("holds several splits (" + quote(train) + ", " + quote(other) + ")", data.string(),
              "name the files of one, such as " + quote((data / "train*").string()));
}

void require_all_parts(const std::vector<fs::path>& files) {
  std::map<std::pair<std::string, int64_t>, std::set<int64_t>> parts;
  for (const fs::path& file : files) {
    const PartName name = part_of(file.filename().string());
    if (name.part >= 0) parts[{name.stem, name.parts}].insert(name.part);
  }
  for (const auto& [name, seen] : parts) {
    for (int64_t part = 0; part < name.second; ++part) {
      if (seen.contains(part)) continue;
      throw Error(
          "part " + std::to_string(part) + " of " + std::to_string(name.second) + " of " + quote(name.first) + " is missing",
          files.front().parent_path().string(), "fetch the missing file");
    }
  }
}

std::vector<fs::path> listed(const fs::path& directory, const std::string& pattern, const fs::path& data) {
  std::vector<fs::path> files;
  std::error_code code;
  for (fs::directory_iterator entry(directory, code), end; !code && entry != end; entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    const bool wanted = pattern.empty() ? is_data(name) : fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0;
    std::error_code ignored;
    if (wanted && !entry->is_directory(ignored)) files.push_back(entry->path());
  }
  if (code) throw Error("cannot be listed: " + code.message(), directory.string(), "check its name and permissions");
  if (files.empty())
    throw Error("no data file is there", data.string(), "snug reads .jsonl, .json (one array) and .parquet");
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::vector<fs::path> find_data_files(const fs::path& data) {
  const std::string name = data.filename().string();
  std::error_code code;
  const bool directory = fs::is_directory(data, code);
  const bool pattern = !directory && name.find_first_of("*?") != std::string::npos && !fs::exists(data, code);
  if (!directory && !pattern) return {data};
  const fs::path parent = directory ? data : data.has_parent_path() ? data.parent_path() : fs::path(".");
  std::vector<fs::path> files = listed(parent, directory ? std::string() : name, data);
  if (directory) {
    refuse_splits(files, data);
    const auto packed = [](const fs::path& file) { return file.extension() == ".parquet"; };
    if (!std::ranges::all_of(files, packed) && std::ranges::any_of(files, packed))
      throw Error("holds Parquet files beside others", data.string(),
                  "name the files, such as " + quote((data / "*.parquet").string()));
  }
  require_all_parts(files);
  return files;
}

}  // namespace snug
