#include "recipe/dialects/settings_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "recipe/dialects/files_below.h"
#include "recipe/dialects/own_words.h"

namespace snug::dialects {

namespace {

namespace fs = std::filesystem;

std::optional<Document> training_of(const NearbyFile& script) {
  try {
    Document document = read_python(script.text, script.path.lexically_normal().string());
    if (document.has("model_name_or_path")) return document;
  } catch (const Error&) {  // trains nothing
  }
  return std::nullopt;
}

// Of those that train the same model the first; none of several.
template <class Is>
std::optional<Document> the_one(const std::vector<NearbyFile>& scripts, const Is& is) {
  constexpr int kMostRead = 8;
  std::optional<Document> one;
  int read = 0;
  for (const NearbyFile& script : scripts) {
    if (!is(script)) continue;
    if (++read > kMostRead) return std::nullopt;  // nobody has looked at all of them
    std::optional<Document> document = training_of(script);
    if (!document) continue;
    if (one && one->find("model_name_or_path")->text() != document->find("model_name_or_path")->text()) return std::nullopt;
    if (!one) one = std::move(document);
  }
  return one;
}

std::optional<Document> script_of(const std::string& settings, std::string& why) {
  std::error_code error;
  if (!fs::is_regular_file(settings, error)) return std::nullopt;
  const fs::path file(settings), folder = file.parent_path().empty() ? fs::path(".") : file.parent_path();
  const std::string name = file.filename().string();
  const auto speaks = [&](const NearbyFile& script) { return script.text.find(name) != std::string::npos; };
  constexpr int kDeep = 4;
  const std::vector<NearbyFile> near = files_below(project_of(folder), {".py"}, kDeep);
  why = "reads it";
  if (std::ranges::any_of(near, speaks)) return the_one(near, speaks);
  why = "is the only script beside it that trains";
  return the_one(files_below(folder, {".py"}, 0), [](const NearbyFile&) { return true; });
}

}  // namespace

std::optional<Document> with_its_script(Document settings) {
  std::string why;
  std::optional<Document> script = script_of(settings.where, why);
  if (!script) return std::nullopt;
  const bool full = settings.has("use_peft") && settings.find("use_peft")->text() == "false";
  for (Entry& entry : script->entries) {
    const bool matters = entry.path == "use_peft" || std::ranges::find(kMatter, entry.path) != kMatter.end();
    if (!matters || settings.has(entry.path) || (full && entry.path.starts_with("lora_"))) continue;
    entry.in_place = false;
    entry.line = 0;
    entry.name = entry.value = {};
    settings.entries.push_back(std::move(entry));
  }
  settings.notes.push_back(fmt::format("it names no model: taken from {}, which {}", script->where, why));
  std::ranges::move(script->notes, std::back_inserter(settings.notes));
  for (std::string& key : script->unread)
    if (!settings.has(key) && key != "the trainer's settings") settings.unread.push_back(std::move(key));
  settings.beside.push_back(script->where);
  return settings;
}

}  // namespace snug::dialects
