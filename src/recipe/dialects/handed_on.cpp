#include "recipe/dialects/handed_on.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "recipe/dialects/beside.h"

namespace snug::dialects {

namespace {

namespace fs = std::filesystem;

bool holds_keys(const std::string& name) {
  return name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json");
}

std::optional<Document> read_keys(std::string_view text, const std::string& name) {
  try {
    return name.ends_with(".json") ? read_json(text, name) : read_yaml(text, name);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<Document> written_by_itself(const std::vector<WrittenFile>& written, const std::string& name) {
  const auto same = [&](const WrittenFile& file) {
    return fs::path(file.name).lexically_normal() == fs::path(name).lexically_normal();
  };
  const auto file = std::find_if(written.rbegin(), written.rend(), same);
  return file == written.rend() ? std::nullopt : read_keys(file->text, name);
}

std::optional<Document> beside(const std::string& script, const std::string& name) {
  const std::optional<std::string> text = read_beside(script, name, static_cast<int64_t>(kLargestDocumentBytes));
  return text ? read_keys(*text, name) : std::nullopt;
}

struct Group {
  std::string name, file;
  std::optional<Document> keys = std::nullopt;
  bool global = false;  // "# @package _global_": its keys stand at the top, and hold over those of others

  std::string path() const { return name + "/" + file + (holds_keys(file) ? "" : ".yaml"); }
};

// "defaults: - model: qwen3", what is left out by null aside.
std::vector<Group> groups_of(const Document& document) {
  constexpr size_t kMost = 32;
  std::vector<Group> groups;
  for (const Entry& entry : document.entries)
    if (entry.path.starts_with("defaults.") && entry.kind == EntryKind::scalar && !entry.text().empty() &&
        groups.size() < kMost)
      groups.push_back({group_named(entry.leaf()), entry.text()});
  return groups;
}

void open_global(const std::string& where, Group& group) {
  const std::optional<std::string> text = read_beside(where, group.path(), static_cast<int64_t>(kLargestDocumentBytes));
  group.global = text && text->substr(0, 400).find("@package _global_") != std::string::npos;
  if (group.global) group.keys = read_keys(*text, group.path());
}

bool is_default(const Entry& entry) { return entry.path.starts_with("defaults"); }

// An experiment's keys, and which files of the other groups it takes, unless somebody has chosen another.
void take_global(Group& global, const std::set<std::string>& chosen, std::vector<Group>& groups, Document& document) {
  for (const Group& other : groups_of(*global.keys)) {
    const auto same = std::ranges::find(groups, other.name, &Group::name);
    if (same == groups.end())
      groups.push_back(other);
    else if (!chosen.contains(other.name))
      same->file = other.file;
  }
  std::erase_if(global.keys->entries, is_default);
  std::set<std::string_view> says;
  for (const Entry& entry : global.keys->entries)
    if (entry.kind != EntryKind::map) says.insert(entry.path);
  std::erase_if(document.entries, [&](const Entry& entry) { return says.contains(entry.path); });
  put_before(std::move(*global.keys), document);
}

// Hydra's "defaults: - model: qwen3": model/qwen3.yaml beside it or above, whose keys are below "model".
void read_groups(const std::set<std::string>& chosen, Document& document) {
  constexpr size_t kMost = 64;  // an experiment may name others
  std::vector<Group> groups = groups_of(document);
  bool read = false;
  for (size_t i = 0; i < std::min(groups.size(), kMost); ++i) {
    open_global(document.where, groups[i]);
    if (!groups[i].keys) continue;
    Group global = groups[i];
    take_global(global, chosen, groups, document);
    document.beside.push_back(global.path());
    read = true;
  }
  if (groups.size() > kMost) groups.erase(groups.begin() + kMost, groups.end());
  for (const Group& group : groups) {
    std::optional<Document> keys = group.global ? std::nullopt : beside(document.where, group.path());
    if (!keys) continue;
    for (Entry& entry : keys->entries) entry.path = group.name + "." + entry.path;
    keys->entries.insert(keys->entries.begin(), Entry{.path = group.name, .kind = EntryKind::map});
    put_before(std::move(*keys), document);
    document.beside.push_back(group.path());
    read = true;
  }
  if (read) std::erase_if(document.entries, is_default);
}

}  // namespace

void put_before(Document keys, Document& document) {
  std::set<std::string_view> own;
  for (const Entry& entry : document.entries) own.insert(entry.path);
  std::erase_if(keys.entries,  // but what stands before its keys
                [&](const Entry& entry) { return entry.kind != EntryKind::map && own.contains(entry.path); });
  for (Entry& entry : keys.entries) {
    entry.in_place = false;
    entry.line = 0;
    entry.name = entry.value = {};
  }
  document.entries.insert(document.entries.begin(), std::make_move_iterator(keys.entries.begin()),
                          std::make_move_iterator(keys.entries.end()));
}

std::string handed_on(const Document& script) {
  if (const Entry* config = script.find("config"); config && holds_keys(config->text())) return config->text();
  const Entry* words = script.find("words");
  if (words == nullptr) return {};
  const auto word = std::find_if(words->values.rbegin(), words->values.rend(), holds_keys);
  return word == words->values.rend() ? std::string() : *word;
}

void read_handed_on(const std::vector<WrittenFile>& written, Document& script) {
  const std::string name = handed_on(script);
  if (name.empty()) return;
  std::optional<Document> keys = written_by_itself(written, name);
  const bool own = keys.has_value();
  if (!own) keys = beside(script.where, name);
  if (!keys || keys->entries.empty()) return;
  std::erase_if(script.entries, [](const Entry& entry) { return entry.path == "config"; });
  put_before(std::move(*keys), script);
  script.beside.push_back(own ? name + ", which the script writes" : name);
}

void read_launcher_settings(const std::vector<WrittenFile>& written, Document& script) {
  const auto config = std::ranges::find_if(script.entries, [](const Entry& entry) {
    return (entry.path == "launch.config_file" || entry.path == "launch.accelerate_config") && holds_keys(entry.text());
  });
  if (config == script.entries.end()) return;
  const std::string name = config->text();
  std::optional<Document> keys = written_by_itself(written, name);
  if (!keys) keys = beside(script.where, name);
  if (!keys || keys->entries.empty()) return;
  script.entries.erase(config);
  for (Entry& entry : keys->entries) entry.path = "launch." + entry.path;
  put_before(std::move(*keys), script);
  script.beside.push_back(name);
}

std::string group_named(std::string_view word) {
  constexpr std::string_view kOverride = "override ";
  if (word.starts_with(kOverride)) word.remove_prefix(kOverride.size());
  if (word.starts_with('/')) word.remove_prefix(1);
  return std::string(word.substr(0, word.find('@')));
}

void read_inherited(Document& document, const std::set<std::string>& chosen) {
  read_groups(chosen, document);
  std::erase_if(document.entries, [](const Entry& entry) { return entry.text() == "???"; });  // OmegaConf's: to be said
  constexpr std::string_view kWords[] = {"inherits", "inherit", "extends", "base_config", "_base_"};
  for (int depth = 0; depth < 4; ++depth) {
    const auto base = std::ranges::find_if(document.entries, [&](const Entry& entry) {
      const bool word = !entry.text().empty() && entry.text().find_first_of(" /\n") == std::string::npos;
      return std::ranges::find(kWords, entry.path) != std::end(kWords) && (word || holds_keys(entry.text()));
    });
    if (base == document.entries.end()) return;
    const std::string name = base->text() + (holds_keys(base->text()) ? "" : ".yaml");
    std::optional<Document> keys = beside(document.where, name);
    if (!keys) return;
    document.entries.erase(base);
    put_before(std::move(*keys), document);
    document.beside.push_back(name);
  }
}

}  // namespace snug::dialects
