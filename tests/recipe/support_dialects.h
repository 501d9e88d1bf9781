#pragma once
// What the tests of other trainers' recipes share.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "recipe/dialects/dialect.h"
#include "recipe/keys.h"
#include "temporary_directory.h"

namespace snug {

inline std::filesystem::path shared_recipes() {
  const char* named = std::getenv("SNUG_SHARED");
  const std::filesystem::path shared = named ? named : std::filesystem::path(SNUG_SOURCE_DIR) / ".." / "shared";
  const std::filesystem::path recipes = shared / "data" / "recipes";
  return std::filesystem::exists(recipes) ? recipes : std::filesystem::path();
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

inline std::string value_of(const Recipe& recipe, std::string_view key) {
  const Key* known = find_key(key);
  return known && known->get ? known->get(recipe) : "no such key";
}

// Reads a text that must be another trainer's recipe.
inline ForeignRecipe foreign(const std::string& text, const std::string& where = "r.yaml") {
  auto read = read_foreign_recipe(text, where);
  if (!read) {
    ADD_FAILURE() << where << " is not recognised";
    return {};
  }
  return *read;
}

inline const ForeignKey& key_named(const ForeignRecipe& recipe, const std::string& name) {
  static const ForeignKey kNone;
  for (const ForeignKey& key : recipe.keys)
    if (key.name == name) return key;
  ADD_FAILURE() << "no key " << name;
  return kNone;
}

inline bool says(const ForeignRecipe& recipe, const std::string& note) {
  return std::ranges::find(recipe.notes, note) != recipe.notes.end();
}

// Recipes beside what they name, import or are started by, in a folder of the test's own.
class RecipeFolder : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((directory_ / name).parent_path());
    std::ofstream(directory_ / name) << text;
  }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  ForeignRecipe read(const std::string& name) const { return foreign(text_of(path(name)), path(name)); }

  test::TemporaryDirectory directory_;
};

inline std::string model_of(const ForeignRecipe& recipe) { return recipe.models.empty() ? "none" : recipe.models.front(); }

}  // namespace snug
