#pragma once
// fit in another trainer's recipe: what may be searched there although the file sets it, and the best recipe as a change of
// the file, in its own words.

#include <optional>
#include <string>
#include <vector>

#include "advise/recommend.h"
#include "recipe/dialects/changes.h"
#include "recipe/dialects/dialect.h"

namespace snug {

struct FileInQuestion {
  const ForeignRecipe& recipe;
  std::string text, name;
};

// Of another trainer's recipe what saves memory is searched although the file sets it, unless one of `keys_of_flags` says
// the same; what is trained, and on rows of what length, stays. Changes the question's keys and limits; `file` must outlive
// it. Returns the keys that the file sets and the search may change.
std::vector<std::string> free_keys(FitQuestion& question, const FileInQuestion& file,
                                   const std::vector<std::string>& keys_of_flags);

// The best recipe as a change of the file; none if nothing fits.
std::optional<RecipePatch> patch_of(const FileInQuestion& file, const FitAnswer& answer);

}  // namespace snug
