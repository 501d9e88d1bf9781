#pragma once
// Arguments of a command that takes a recipe: one MODEL or RECIPE.yaml, recipe keys as flags, and the command's own flags.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ask/asker.h"
#include "ask/options.h"
#include "recipe/dialects/dialect.h"
#include "recipe/recipe.h"

namespace snug {

struct Arguments : Options {
  Recipe recipe;
  std::vector<std::string> keys_set;       // recipe keys given by file or flag
  std::vector<std::string> keys_of_flags;  // of these, the ones that flags gave
  std::vector<std::string> passed_over;    // keys that are known and have no effect here

  std::string recipe_file;               // "" without one
  std::optional<ForeignRecipe> foreign;  // the recipe file, if it is another trainer's
};

// What a recipe key takes as a flag; throws UsageError for a name that is neither ours nor another trainer's.
Takes takes_of_key(const std::string& name);

// Whether a model that is neither here nor in the catalogue may be planned as the one that its name tells of, which is said:
// for what only answers.
enum class ModelNames : uint8_t { as_given, tell_of_their_base };

// Flags that are not the command's own are recipe keys. A positional that ends in .yaml, .yml or .sh is read as a recipe, as
// is a .json of another trainer; flags then change it. Another trainer's recipe is told of, with its keys that touch
// memory and are not planned. Any other positional is the model. Throws UsageError for more than one of either, Error for a
// bad value.
Arguments read_arguments(Options options, Asker& asker, ModelNames names = ModelNames::as_given);

// Both steps; `own` as parse_options takes it. Throws UsageError for an unknown flag or a missing value too.
Arguments parse_arguments(std::span<char* const> words, const std::vector<std::string>& own, Asker& asker,
                          ModelNames names = ModelNames::as_given);

}  // namespace snug
