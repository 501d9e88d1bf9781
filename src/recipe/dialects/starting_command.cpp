#include "recipe/dialects/starting_command.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>

#include "base/error.h"
#include "recipe/dialects/files_below.h"

namespace snug::dialects {

namespace {

namespace fs = std::filesystem;

// With a script of this name, of which there are many, that is this one: from the command's folder, or from one above, where
// a project's commands are mostly given.
bool starts(const Document& command, const fs::path& script) {
  if (command.started.empty()) return false;
  fs::path from = fs::path(command.where).parent_path();
  for (int up = 0; up < 4; ++up, from /= "..")
    if (is_same_file(from / command.started, script)) return true;
  return false;
}

std::optional<Document> command_of(const NearbyFile& file, const fs::path& script) {
  try {
    Document document = read_shell(file.text, file.path.lexically_normal().string());
    if (starts(document, script) && document.has("model_name_or_path") &&
        document.find("model_name_or_path")->values.size() == 1)
      return document;
  } catch (const Error&) {  // starts nothing that trains
  }
  return std::nullopt;
}

}  // namespace

std::optional<Document> started_by(const Document& script) {
  std::error_code error;
  const fs::path file(script.where), folder = file.parent_path().empty() ? fs::path(".") : file.parent_path();
  if (script.syntax != Syntax::python || file.extension() != ".py" || !fs::is_regular_file(file, error)) return std::nullopt;
  const std::string name = file.filename().string();
  constexpr int kDeep = 3, kMostRead = 16;
  std::optional<Document> one;
  int read = 0;
  for (const NearbyFile& near : files_below(project_of(folder), {".sh", ".bash", ".sbatch", ".slurm"}, kDeep)) {
    if (near.text.find(name) == std::string::npos) continue;
    if (++read > kMostRead) return std::nullopt;  // nobody has looked at all of them
    std::optional<Document> command = command_of(near, file);
    if (!command) continue;
    if (one && one->find("model_name_or_path")->text() != command->find("model_name_or_path")->text()) return std::nullopt;
    if (!one) one = std::move(command);
  }
  if (!one) return std::nullopt;
  one->notes.push_back(fmt::format("its command says its model: read with {}, which starts it", one->where));
  one->beside.push_back(one->where);
  return one;
}

}  // namespace snug::dialects
