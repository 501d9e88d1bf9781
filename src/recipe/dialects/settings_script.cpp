#include "recipe/dialects/settings_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "recipe/dialects/own_words.h"

namespace snug::dialects {

namespace {

namespace fs = std::filesystem;

struct PythonFile {
  fs::path path;
  std::string text;
};

bool is_project(const fs::path& folder) {
  constexpr std::array<const char*, 6> kMarks = {".git",      "pyproject.toml", "setup.py", "requirements.txt",
                                                 "README.md", "environment.yml"};
  std::error_code error;
  return std::ranges::any_of(kMarks, [&](const char* mark) { return fs::exists(folder / mark, error); });
}

// Where the project begins: at most three folders above; the folder above where nothing tells.
fs::path project_of(const fs::path& folder) {
  fs::path above = folder;
  for (int up = 0; up < 4; ++up, above /= "..")
    if (is_project(above)) return above;
  return folder / "..";
}

bool holds_no_scripts(const std::string& name) {
  constexpr std::array<std::string_view, 6> kOthers = {"node_modules", "site-packages", "venv",
                                                       "env",          "__pycache__",   "tests"};
  return name.starts_with('.') || std::ranges::find(kOthers, name) != kOthers.end();
}

// Python files of a folder and of those below it, in the order of their names.
class FilesBelow {
 public:
  explicit FilesBelow(const fs::path& top, int deep) { look_into(top, deep); }

  std::vector<PythonFile> found;

 private:
  static constexpr size_t kMostFiles = 100;
  static constexpr int kMostEntries = 2000;
  static constexpr int64_t kMostBytes = int64_t{1} << 18;

  void look_into(const fs::path& folder, int deep) {
    std::vector<fs::path> entries;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end && ++seen_ < kMostEntries;
         entry.increment(error))
      entries.push_back(entry->path());
    std::ranges::sort(entries);
    for (const fs::path& entry : entries)
      if (entry.extension() == ".py" && found.size() < kMostFiles) take(entry);
    for (const fs::path& entry : entries)
      if (deep > 0 && !holds_no_scripts(entry.filename().string()) && fs::is_directory(entry, error))
        look_into(entry, deep - 1);
  }

  void take(const fs::path& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return;
    try {
      found.push_back({path, read_text(path, kMostBytes, 0, "")});
    } catch (const Error&) {  // too large, or not to be read: not the script
    }
  }

  int seen_ = 0;
};

std::optional<Document> training_of(const PythonFile& script) {
  try {
    Document document = read_python(script.text, script.path.lexically_normal().string());
    if (document.has("model_name_or_path")) return document;
  } catch (const Error&) {  // trains nothing
  }
  return std::nullopt;
}

// Of those that train the same model the first; none of several.
template <class Is>
std::optional<Document> the_one(const std::vector<PythonFile>& scripts, const Is& is) {
  constexpr int kMostRead = 8;
  std::optional<Document> one;
  int read = 0;
  for (const PythonFile& script : scripts) {
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
  const auto speaks = [&](const PythonFile& script) { return script.text.find(name) != std::string::npos; };
  constexpr int kDeep = 4;
  const std::vector<PythonFile> near = FilesBelow(project_of(folder), kDeep).found;
  why = "reads it";
  if (std::ranges::any_of(near, speaks)) return the_one(near, speaks);
  why = "is the only script beside it that trains";
  return the_one(FilesBelow(folder, 0).found, [](const PythonFile&) { return true; });
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
