#pragma once
// Arguments of a command: one MODEL or RECIPE.yaml, recipe keys as flags, and the command's own flags.

#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "recipe/dialects/dialect.h"
#include "recipe/recipe.h"

namespace snug::cli {

// A mistake in how the program was called: exit code 2.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Arguments {
  Recipe recipe;
  std::vector<std::string> positional;
  std::map<std::string, std::string> flags;               // the command's own, without dashes; "" for one that stands alone
  std::map<std::string, std::vector<std::string>> lists;  // those of its flags that may be repeated
  std::vector<std::string> keys_set;                      // recipe keys given by file or flag
  std::vector<std::string> keys_of_flags;                 // of these, the ones that flags gave
  std::vector<std::string> passed_over;                   // keys that are known and have no effect here

  std::string recipe_file;               // "" without one
  std::optional<ForeignRecipe> foreign;  // the recipe file, if it is another trainer's

  bool has(const std::string& flag) const { return flags.contains(flag); }
};

// `own`: names of the command's flags; those that end with "=" take a value, with "=+" one each
// time they are given. Everything else must be a recipe key. A
// positional that ends in .yaml, .yml or .sh is read as a recipe, as is a .json of another trainer; flags then change it.
// Another trainer's recipe is named on stderr, with its keys that touch memory and are not planned. Any other positional is
// the model. Throws UsageError for an unknown flag or a missing value, Error for a bad value.
Arguments parse_arguments(std::span<char* const> arguments, const std::vector<std::string>& own);

}  // namespace snug::cli
