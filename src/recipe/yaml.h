#pragma once
// Recipes as YAML files: one flat mapping of keys to scalars and lists. Nothing else of YAML is taken: no anchors to expand,
// no tags to construct. Knows the key table, not what the keys mean.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/recipe.h"

namespace snug {

struct RecipeFile {
  Recipe recipe;
  std::vector<std::string> keys_set;     // our names, in the file's order
  std::vector<std::string> passed_over;  // keys as written that have no effect here
};

// `text`: the YAML; `where`: its name, to which messages add ":LINE". Throws Error. Does not call `validate`: flags may
// follow.
RecipeFile parse_recipe_yaml(std::string_view text, const std::string& where);

// The text of a file of at most 1 MiB. Throws Error.
std::string read_recipe_text(const std::filesystem::path& path);

// Reads a file of at most 1 MiB.
RecipeFile read_recipe_yaml(const std::filesystem::path& path);

// Every key with its value, in the order of the table; reading it back gives the same recipe.
std::string write_recipe_yaml(const Recipe& recipe);

}  // namespace snug
