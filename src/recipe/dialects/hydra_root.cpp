#include "recipe/dialects/hydra_root.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "base/error.h"
#include "recipe/dialects/files_below.h"
#include "recipe/dialects/handed_on.h"

namespace snug::dialects {

namespace {

namespace fs = std::filesystem;

// What a file of settings says; none where it is something else.
std::optional<Document> settings_in(const NearbyFile& file) {
  try {
    return read_yaml(file.text, file.path.lexically_normal().string());
  } catch (const Error&) {
    return std::nullopt;
  }
}

// "- training: base", "- override /training: base" among its defaults.
bool takes_in(const Document& root, const std::string& group, const std::string& name) {
  return std::ranges::any_of(root.entries, [&](const Entry& entry) {
    return entry.path.starts_with("defaults.") && group_named(entry.leaf()) == group && entry.text() == name;
  });
}

}  // namespace

std::optional<Document> root_of(const Document& group) {
  const fs::path file(group.where), folder = file.parent_path();
  std::error_code error;
  if (group.syntax != Syntax::yaml || folder.empty() || !fs::is_regular_file(file, error)) return std::nullopt;
  const fs::path above = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  std::optional<Document> root;
  for (const NearbyFile& near : files_below(above, {".yaml", ".yml"}, 0)) {
    std::optional<Document> settings = settings_in(near);
    if (!settings || !takes_in(*settings, folder.filename().string(), file.stem().string())) continue;
    if (root) return std::nullopt;
    root = std::move(settings);
  }
  if (!root) return std::nullopt;
  read_inherited(*root);
  for (Entry& entry : root->entries) {  // nothing there is changed through the group
    entry.in_place = false;
    entry.line = 0;
    entry.name = entry.value = {};
  }
  root->notes.push_back(fmt::format("it is a group of {}: read with all that takes in", root->where));
  return root;
}

}  // namespace snug::dialects
