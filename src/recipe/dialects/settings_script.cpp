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
#include "recipe/dialects/reading.h"

namespace snug::dialects {

namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& file) { return file.parent_path().empty() ? fs::path(".") : file.parent_path(); }

// As the script says by itself, or started with the file, as those with TrlParser are.
std::optional<Document> training_of(const NearbyFile& script, const fs::path& settings) {
  const fs::path folder = folder_of(settings);
  const auto with_model = [](Document document) {
    const Entry* const model = document.find("model_name_or_path");
    return model && !model->text().empty() ? std::optional(std::move(document)) : std::nullopt;
  };
  try {
    if (script.path.extension() != ".py") {
      Document started = read_document(script.text, script.path.lexically_normal().string());
      if (std::optional<Document> renamed = by_trainers_names(started, true)) started = std::move(*renamed);
      return with_model(std::move(started));
    }
    if (auto document = with_model(read_python(script.text, script.path.lexically_normal().string()))) return document;
    const std::string path = script.path.lexically_relative(folder).string(), name = settings.filename().string();
    if ((path + name).find_first_of(" '\"$`\\") != std::string::npos) return std::nullopt;
    Document started = read_document(fmt::format("python {} --config {}\n", path, name), (folder / "command.sh").string());
    if (std::optional<Document> renamed = by_trainers_names(started, true)) started = std::move(*renamed);
    started.where = script.path.lexically_normal().string();
    return with_model(std::move(started));
  } catch (const Error&) {  // trains nothing
    return std::nullopt;
  }
}

// Of those that train the same model the first; none of several.
template <class Is>
std::optional<Document> the_one(const std::vector<NearbyFile>& scripts, const fs::path& settings, const Is& is) {
  constexpr int kMostRead = 8;
  std::optional<Document> one;
  int read = 0;
  for (const NearbyFile& script : scripts) {
    if (!is(script)) continue;
    if (++read > kMostRead) return std::nullopt;  // nobody has looked at all of them
    std::optional<Document> document = training_of(script, settings);
    if (!document) continue;
    if (one && one->find("model_name_or_path")->text() != document->find("model_name_or_path")->text()) return std::nullopt;
    if (!one) one = std::move(document);
  }
  return one;
}

std::optional<Document> script_of(const std::string& settings, std::string& why) {
  std::error_code error;
  if (!fs::is_regular_file(settings, error)) return std::nullopt;
  const fs::path file(settings), folder = folder_of(file);
  const std::string name = file.filename().string();
  const auto speaks = [&](const NearbyFile& script) { return script.text.find(name) != std::string::npos; };
  constexpr int kDeep = 4;
  const std::vector<NearbyFile> near = files_below(project_of(folder), {".py"}, kDeep);
  why = "reads it";
  if (std::ranges::any_of(near, speaks)) return the_one(near, file, speaks);
  why = "hands it to its trainer";
  const std::vector<NearbyFile> commands = files_below(project_of(folder), {".sh", ".bash", ".sbatch", ".slurm"}, kDeep);
  if (std::ranges::any_of(commands, speaks)) return the_one(commands, file, speaks);
  why = "is the only script beside it that trains";
  return the_one(files_below(folder, {".py"}, 0), file, [](const NearbyFile&) { return true; });
}

// "model.yaml" beside "sft.yaml": one script reads both.
std::optional<Document> model_settings_beside(const std::string& settings, std::string& why) {
  const fs::path folder = folder_of(settings);
  for (const NearbyFile& file : files_below(folder, {".yaml", ".yml", ".json"}, 0)) {
    const std::string stem = file.path.stem().string();
    if ((stem != "model" && stem != "model_config") || is_same_file(file.path, settings)) continue;
    try {
      Document document = read_document(file.text, file.path.lexically_normal().string());
      if (std::optional<Document> renamed = by_trainers_names(document, true)) document = std::move(*renamed);
      const Entry* const model = document.find("model_name_or_path");
      if (!model || model->text().empty()) continue;
      why = "lies beside it and names one";
      return document;
    } catch (const Error&) {  // settings of something else
    }
  }
  return std::nullopt;
}

}  // namespace

namespace {

// No key of theirs has one of the words in its name.
bool is_silent_of(const Document& settings, std::initializer_list<std::string_view> words) {
  return std::ranges::none_of(settings.entries, [&](const Entry& entry) {
    const std::string path = lower(entry.path);
    return std::ranges::any_of(words, [&](std::string_view word) { return path.find(word) != std::string::npos; });
  });
}

}  // namespace

bool leaves_method_open(const Document& settings) {
  return is_silent_of(settings, {"use_peft", "lora", "peft", "load_in_", "quant", "method", "adapter"});
}

bool leaves_precision_open(const Document& settings) {
  return is_silent_of(settings, {"bf16", "fp16", "dtype", "precision"});
}

std::optional<Document> with_its_script(Document settings) {
  std::string why;
  std::optional<Document> script = script_of(settings.where, why);
  const Entry* const model = settings.find("model_name_or_path");
  if (!script && !model) script = model_settings_beside(settings.where, why);
  if (!script) return std::nullopt;
  if (model && model->text() != script->find("model_name_or_path")->text()) return std::nullopt;
  const std::string lacks = !model                         ? "it names no model"
                            : leaves_method_open(settings) ? "it does not say how the model is trained"
                                                           : "it does not say in which precision";
  const bool full = settings.has("use_peft") && settings.find("use_peft")->text() == "false";
  for (Entry& entry : script->entries) {
    const bool matters = entry.path == "use_peft" || std::ranges::find(kMatter, entry.path) != kMatter.end();
    if (!matters || settings.has(entry.path) || (full && entry.path.starts_with("lora_"))) continue;
    entry.in_place = false;
    entry.line = 0;
    entry.name = entry.value = {};
    settings.entries.push_back(std::move(entry));
  }
  settings.notes.push_back(fmt::format("{}: taken from {}, which {}", lacks, script->where, why));
  std::ranges::move(script->notes, std::back_inserter(settings.notes));
  for (std::string& key : script->unread)
    if (!settings.has(key) && key != "the trainer's settings") settings.unread.push_back(std::move(key));
  settings.beside.push_back(script->where);
  return settings;
}

}  // namespace snug::dialects
