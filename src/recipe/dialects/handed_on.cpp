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

// Before the document's own, which hold over them; nothing of theirs can be changed in it.
void put_before(Document keys, Document& document) {
  std::set<std::string_view> own;
  for (const Entry& entry : document.entries) own.insert(entry.path);
  std::erase_if(keys.entries, [&](const Entry& entry) { return own.contains(entry.path); });
  for (Entry& entry : keys.entries) {
    entry.in_place = false;
    entry.line = 0;
    entry.name = entry.value = {};
  }
  document.entries.insert(document.entries.begin(), std::make_move_iterator(keys.entries.begin()),
                          std::make_move_iterator(keys.entries.end()));
}

// Hydra's "defaults: - model: qwen3": model/qwen3.yaml beside it or above, whose keys are below "model".
void read_groups(Document& document) {
  std::vector<std::pair<std::string, std::string>> groups;  // and their files
  for (const Entry& entry : document.entries)
    if (entry.path.starts_with("defaults.") && entry.kind == EntryKind::scalar && !entry.text().empty() &&
        groups.size() < 16)
      groups.emplace_back(group_named(entry.leaf()), entry.text());
  bool read = false;
  for (const auto& [group, name] : groups) {
    const std::string file = group + "/" + name + (holds_keys(name) ? "" : ".yaml");
    std::optional<Document> keys = beside(document.where, file);
    if (!keys) continue;
    for (Entry& entry : keys->entries) entry.path = group + "." + entry.path;
    keys->entries.insert(keys->entries.begin(), Entry{.path = group, .kind = EntryKind::map});
    put_before(std::move(*keys), document);
    document.beside.push_back(file);
    read = true;
  }
  if (read) std::erase_if(document.entries, [](const Entry& entry) { return entry.path.starts_with("defaults"); });
}

}  // namespace

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

void read_inherited(Document& document) {
  read_groups(document);
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
