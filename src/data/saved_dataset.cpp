#include "data/saved_dataset.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/hugging_face.h"
#include "base/quote.h"
#include "data/file_names.h"
#include "data/json_row.h"
#include "data/naming.h"

namespace snug {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInfo = "dataset_info.json";
constexpr const char* kState = "state.json";
constexpr const char* kDict = "dataset_dict.json";
constexpr const char* kSaveAnew = "save the data set anew with save_to_disk";

JsonValue read_object(const fs::path& file) {
  constexpr int64_t kMostBytes = int64_t{16} << 20;
  return naming(file.string(), [&] { return JsonRowParser().parse(read_text(file, kMostBytes, 0, kSaveAnew), {}); });
}

// A name in `file` of something beside it. Throws Error for anything that leads elsewhere.
const std::string& plain_name(const JsonValue* value, const fs::path& file) {
  const std::string* name = value == nullptr ? nullptr : value->string();
  if (name == nullptr || name->empty() || name->find('/') != std::string::npos || *name == "." || *name == "..")
    throw Error("names what is no file beside it", file.string(), kSaveAnew);
  return *name;
}

const JsonValue::List& list_in(const JsonValue& object, const char* key, const fs::path& file) {
  const JsonValue* value = object.find(key);
  if (value == nullptr || value->list() == nullptr || value->list()->empty())
    throw Error(std::string("lists no ") + key, file.string(), kSaveAnew);
  return *value->list();
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + quote(name);
  return text;
}

// The split to train on. `example`: how one is named, where "train" stands for its name.
std::string choose_split(const std::vector<std::string>& splits, const fs::path& directory, const std::string& example) {
  if (splits.size() == 1) return splits.front();
  if (std::ranges::find(splits, "train") != splits.end()) return "train";
  std::string path = (directory / example).string();
  path.replace(path.rfind("train"), std::string_view("train").size(), splits.front());
  throw Error("holds the splits " + joined(splits) + " and none is called \"train\"", directory.string(),
              "name one, such as " + quote(path));
}

// Old versions saved selected and shuffled rows as all rows and a list of those that are meant.
void refuse_indices(const JsonValue& state, const fs::path& directory) {
  for (const char* key : {"_indices_data_files", "_indices_files"}) {
    const JsonValue* files = state.find(key);
    if (files == nullptr || (files->list() != nullptr && files->list()->empty())) continue;
    throw Error("its rows stand in the order of an indices mapping, which is not supported", directory.string(),
                "call flatten_indices() before save_to_disk");
  }
}

std::vector<fs::path> files_of_state(const fs::path& directory) {
  const fs::path file = directory / kState;
  const JsonValue state = read_object(file);
  refuse_indices(state, directory);
  std::vector<fs::path> files;
  for (const JsonValue& entry : list_in(state, "_data_files", file))
    files.push_back(directory / plain_name(entry.find("filename"), file));
  return files;
}

std::vector<fs::path> files_of_dict(const fs::path& directory) {
  const fs::path file = directory / kDict;
  const JsonValue dict = read_object(file);
  std::vector<std::string> splits;
  for (const JsonValue& name : list_in(dict, "splits", file)) splits.push_back(plain_name(&name, file));
  const fs::path split = directory / choose_split(splits, directory, "train");
  if (!file_exists(split / kState)) throw Error("the split is not there", split.string(), kSaveAnew);
  return files_of_state(split);
}

// NAME-SPLIT.arrow, or its parts NAME-SPLIT-00000-of-00003.arrow; no split's name has a hyphen. What map and shuffle have
// cached lies beside them.
std::optional<std::vector<fs::path>> files_of_cache(const fs::path& directory) {
  std::map<std::string, std::vector<fs::path>> by_split;
  std::error_code code;
  for (fs::directory_iterator entry(directory, code), end; !code && entry != end; entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    if (!name.ends_with(".arrow") || name.starts_with("cache-") || name.starts_with("tmp")) continue;
    const std::string stem = part_of(name).stem;
    by_split[stem.substr(stem.rfind('-') + 1)].push_back(entry->path());
  }
  if (by_split.empty()) return std::nullopt;
  std::vector<std::string> splits;
  for (const auto& [split, files] : by_split) splits.push_back(split);
  std::vector<fs::path> files = by_split[choose_split(splits, directory, "*-train*.arrow")];
  std::ranges::sort(files);
  require_all_parts(files);
  return files;
}

// As `datasets` names folders: camelcase_to_snakecase of its naming.py.
std::string snake_case(std::string_view name) {
  const auto is = [&](size_t i, auto test) { return i < name.size() && test(static_cast<unsigned char>(name[i])) != 0; };
  constexpr auto kUpper = [](unsigned char c) { return std::isupper(c); };
  constexpr auto kLower = [](unsigned char c) { return std::islower(c); };
  constexpr auto kLowerOrDigit = [](unsigned char c) { return std::islower(c) != 0 || std::isdigit(c) != 0; };
  std::string text;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool word = i > 0 && is(i, kUpper) && (is(i - 1, kLowerOrDigit) || (is(i - 1, kUpper) && is(i + 1, kLower)));
    if (word) text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return text;
}

// Directories of finished data sets below `folder`: CONFIGURATION/VERSION/HASH, in old caches fewer.
std::vector<std::string> finished_below(const fs::path& folder) {
  constexpr int kDeepest = 3;
  std::vector<std::string> found;
  std::error_code code;
  constexpr auto kOptions = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(folder, kOptions, code), end; !code && entry != end; entry.increment(code)) {
    std::error_code ignored;
    if (entry.depth() >= kDeepest || entry->path().extension() == ".incomplete") entry.disable_recursion_pending();
    if (entry->path().filename() == kInfo && entry.depth() > 0) found.push_back(entry->path().parent_path().string());
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

std::optional<std::vector<fs::path>> saved_dataset_files(const fs::path& directory) {
  if (file_exists(directory / kDict)) return files_of_dict(directory);
  if (file_exists(directory / kState)) return files_of_state(directory);
  if (file_exists(directory / kInfo)) return files_of_cache(directory);
  return std::nullopt;
}

fs::path datasets_cache() {
  const std::string cache = environment("HF_DATASETS_CACHE");
  return cache.empty() ? hugging_face_home() / "datasets" : fs::path(cache);
}

bool is_dataset_name(std::string_view name) {
  return name.find('/') != std::string_view::npos && is_repository(name) && ending_of(name).empty();
}

fs::path cached_dataset(const std::string& name) {
  const size_t slash = name.find('/');
  const fs::path folder = datasets_cache() / (name.substr(0, slash) + "___" + snake_case(name.substr(slash + 1)));
  const std::vector<std::string> found = finished_below(folder);
  if (found.empty()) {
    throw Error("is no file or directory, and no data set of that name is in " + datasets_cache().string() +
                    "; snug downloads nothing",
                name, "run `python -c \"from datasets import load_dataset; load_dataset('" + name + "')\"`, or give a file");
  }
  if (found.size() == 1) return found.front();
  std::string list;
  for (const std::string& path : found)
    list += (list.empty() ? "" : ", ") + fs::path(path).lexically_relative(folder).string();
  throw Error("several configurations or versions of it are in " + folder.string() + ": " + list, name,
              "give the directory of one, such as " + found.front());
}

}  // namespace snug
