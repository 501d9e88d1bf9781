#include "data/file_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.h"
#include "base/quote.h"

namespace snug {
namespace {

constexpr std::array<std::string_view, 12> kEndings = {".jsonl",     ".ndjson",  ".json", ".parquet", ".arrow",  ".jsonl.gz",
                                                       ".jsonl.zst", ".json.gz", ".csv",  ".tsv",     ".csv.gz", ".csv.zst"};

}  // namespace

std::string_view ending_of(std::string_view name) {
  const auto found = std::ranges::find_if(kEndings, [&](std::string_view ending) { return name.ends_with(ending); });
  return found == kEndings.end() ? std::string_view() : *found;
}

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

void require_all_parts(const std::vector<std::filesystem::path>& files) {
  std::map<std::pair<std::string, int64_t>, std::set<int64_t>> parts;
  for (const std::filesystem::path& file : files) {
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

}  // namespace snug
