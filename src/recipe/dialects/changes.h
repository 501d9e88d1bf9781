#pragma once
// A change of ours, written back into another trainer's file: in its own key names, in place, comments and order kept; an
// absent key is put beside its kin. The result is a text and a unified diff that patch(1) takes.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/dialects/dialect.h"

namespace snug {

struct RecipePatch {
  std::string text;                  // the whole file, changed
  std::string diff;                  // from the old to the new, three lines of context; empty if nothing changes
  std::vector<RecipeChange> unsaid;  // changes that the dialect has no words for, or whose place cannot be changed
};

// `text`: the file as it is; `where`: its name, which the diff carries. A change whose value is the file's own already is
// passed over. Throws Error if the text is not another trainer's recipe.
RecipePatch change_foreign_recipe(std::string_view text, const std::string& where, std::span<const RecipeChange> changes);

// Unified diff between two texts that differ in few lines; `name` on both sides.
std::string unified_diff(std::string_view before, std::string_view after, const std::string& name);

}  // namespace snug
