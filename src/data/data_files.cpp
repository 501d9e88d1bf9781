// Which files a path means.

#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/quote.h"
#include "data/file_names.h"
#include "data/row_source.h"
#include "data/saved_dataset.h"

namespace snug {
namespace {

namespace fs = std::filesystem;

// What `datasets` puts beside the data.
constexpr std::array<std::string_view, 4> kNoData = {"dataset_info.json", "dataset_infos.json", "state.json",
                                                     "dataset_dict.json"};

bool is_data(const std::string& name) {
  if (name.starts_with('.') || name.starts_with('_')) return false;
  return std::ranges::find(kNoData, name) == kNoData.end() && !ending_of(name).empty();
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

// Files that name their columns stand for themselves.
void refuse_mixed(const std::vector<fs::path>& files, const fs::path& data) {
  struct Kind {
    const char *ending, *name;
  };
  for (const Kind& kind : {Kind{".parquet", "Parquet"}, Kind{".arrow", "Arrow"}, Kind{".csv", "CSV"}, Kind{".tsv", "TSV"}}) {
    const auto is_kind = [&](const fs::path& file) { return file.extension() == kind.ending; };
    if (std::ranges::all_of(files, is_kind) || std::ranges::none_of(files, is_kind)) continue;
    throw Error(std::string("holds ") + kind.name + " files beside others", data.string(),
                "name the files, such as " + quote((data / (std::string("*") + kind.ending)).string()));
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
    throw Error("no data file is there", data.string(), "snug reads .jsonl, .json (one array), .csv, .parquet and .arrow");
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::vector<std::string> named_data(const std::string& data) {
  std::error_code code;
  if (data.find(',') == std::string::npos || fs::exists(data, code)) return {data};
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= data.size();) {
    const size_t end = std::min(data.find(',', begin), data.size());
    const std::string_view name = std::string_view(data).substr(begin, end - begin);
    const size_t first = name.find_first_not_of(' ');
    if (first == std::string_view::npos) throw Error("a name between commas is empty", data, "give file,file");
    names.emplace_back(name.substr(first, name.find_last_not_of(' ') + 1 - first));
    if (std::ranges::count(names, names.back()) > 1) throw Error("names " + quote(names.back()) + " twice", data);
    begin = end + 1;
  }
  return names;
}

std::vector<fs::path> find_data_files(const fs::path& data) {
  if (const std::vector<std::string> names = named_data(data.string()); names.size() > 1) {
    std::vector<fs::path> all;
    for (const std::string& one : names) std::ranges::move(find_data_files(one), std::back_inserter(all));
    refuse_mixed(all, data);
    return all;
  }
  const std::string name = data.filename().string();
  std::error_code code;
  const bool directory = fs::is_directory(data, code);
  const bool missing = !directory && !fs::exists(data, code);
  const bool pattern = missing && name.find_first_of("*?") != std::string::npos;
  if (directory)
    if (std::optional<std::vector<fs::path>> files = saved_dataset_files(data)) return *files;
  if (missing && !pattern && is_dataset_name(data.string())) return find_data_files(cached_dataset(data.string()));
  if (!directory && !pattern) return {data};
  const fs::path parent = directory ? data : data.has_parent_path() ? data.parent_path() : fs::path(".");
  std::vector<fs::path> files = listed(parent, directory ? std::string() : name, data);
  if (directory) {
    refuse_splits(files, data);
    refuse_mixed(files, data);
  }
  require_all_parts(files);
  return files;
}

}  // namespace snug
