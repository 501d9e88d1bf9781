#include "recipe/dialects/earlier_stage.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "recipe/dialects/document.h"
#include "recipe/dialects/files_below.h"

namespace snug::dialects {

namespace {

namespace fs = std::filesystem;

// Its parts without those that lead there ("..", "."), and without what a run calls the checkpoints below its output.
std::vector<std::string> parts_of(const std::string& directory) {
  constexpr std::array<std::string_view, 5> kOfRuns = {"checkpoint", "final", "last", "best", "epoch"};
  std::vector<std::string> parts;
  for (const fs::path& part : fs::path(directory).lexically_normal())
    if (const std::string name = part.string(); !name.empty() && name != "." && name != ".." && name != "/")
      parts.push_back(name);
  while (parts.size() > 1 &&
         std::ranges::any_of(kOfRuns, [&](std::string_view name) { return parts.back().starts_with(name); }))
    parts.pop_back();
  return parts;
}

// One of them ends as the other, in two parts at least: where a path begins depends on where a command is started, but
// "output" is anybody's.
bool is_same(const std::vector<std::string>& one, const std::vector<std::string>& other) {
  if (one == other) return !one.empty();
  const auto common = static_cast<std::ptrdiff_t>(std::min(one.size(), other.size()));
  return common > 1 && std::equal(one.end() - common, one.end(), other.end() - common);
}

const Entry* first_of(const Document& document, std::initializer_list<std::string_view> leaves) {
  for (const std::string_view leaf : leaves)
    for (const Entry& entry : document.entries)
      if (entry.leaf() == leaf && entry.kind == EntryKind::scalar && !entry.text().empty()) return &entry;
  return nullptr;
}

// The model of a file that writes this directory; "" for others.
std::string model_of(const NearbyFile& file, const std::vector<std::string>& directory) {
  if (file.text.find(directory.back()) == std::string::npos) return {};
  try {
    const Document document = read_document(file.text, file.path.lexically_normal().string());
    const Entry* const model = first_of(
        document, {"model_name_or_path", "base_model", "base_model_name_or_path", "model_id", "model_name", "model"});
    if (!model) return {};
    for (const Entry& entry : document.entries) {
      const std::string_view leaf = entry.leaf();
      const bool writes = leaf == "export_dir" || leaf == "output_dir" || leaf == "save_dir" || leaf == "output_path" ||
                          leaf == "save_path" || leaf == "merged_dir";
      if (writes && is_same(parts_of(entry.text()), directory)) return model->text();
    }
  } catch (const Error&) {  // no recipe
  }
  return {};
}

}  // namespace

std::optional<EarlierStage> stage_that_writes(const std::string& recipe, const std::string& model) {
  std::error_code error;
  if (!fs::is_regular_file(recipe, error)) return std::nullopt;
  const std::vector<std::string> directory = parts_of(model);
  if (directory.empty()) return std::nullopt;
  const fs::path file(recipe), folder = file.parent_path().empty() ? fs::path(".") : file.parent_path();
  constexpr int kDeep = 3;
  std::optional<EarlierStage> one;
  for (const NearbyFile& near :
       files_below(project_of(folder), {".yaml", ".yml", ".json", ".sh", ".bash", ".sbatch", ".slurm", ".py"}, kDeep)) {
    if (is_same_file(near.path, file)) continue;
    const std::string begins = model_of(near, directory);
    if (begins.empty() || is_same(parts_of(begins), directory)) continue;  // it goes on from there, too
    if (one && one->model != begins) return std::nullopt;
    if (!one) one = EarlierStage{begins, near.path.lexically_normal().string()};
  }
  return one;
}

}  // namespace snug::dialects
