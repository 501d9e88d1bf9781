#pragma once
// Alternatives: what may be changed in a recipe to save memory, and what each change gives up. One vocabulary for the search
// (`fit`) and for the table of single changes (`levers`). An alternative is keys and values as a user would write them.

#include <string>
#include <string_view>
#include <vector>

#include "model/model_spec.h"
#include "recipe/recipe.h"

namespace snug {

// What a change does to the result of training, time apart.
enum class Effect : uint8_t {
  none,   // the same numbers, or sums in another order
  small,  // states or frozen weights rounded
  real,   // something else is trained, or by another rule, or on less
};
const char* name_of(Effect effect);

struct Setting {
  std::string key, value;
};

struct Alternative {
  std::vector<Setting> settings;
  Effect effect = Effect::none;
  std::string note;  // a clause: "states in 8 bits"

  // The recipe with these settings.
  Recipe applied_to(Recipe recipe) const;
};

// The keys in which two recipes differ, with the values of the second.
std::vector<Setting> differences(const Recipe& from, const Recipe& to);

// Whether the recipe's keys go together.
bool is_sound(const Recipe& recipe);

// Groups of alternatives of which at most one is taken each: how the base is kept, what updates it, where its states lie …
// `fixed`: keys that must stay as they are. Whatever the recipe has already is left out.
struct AlternativeGroup {
  std::string_view name;
  std::vector<Alternative> choices;
};
std::vector<AlternativeGroup> alternatives(const Recipe& recipe, const std::vector<std::string>& fixed);

// The group of what may wait on disk: from less to more there.
inline constexpr std::string_view kDisk = "disk";
bool is_of_disk(const Alternative& choice);

// How blocks are recomputed: the first `count` of them; none: not at all.
Alternative recomputing(int64_t count, int64_t layers);

// Of each block what costs least time, until the step fits.
Alternative recomputing_to_fit();

// Micro-batches of so many sequences with the recipe's effective batch; it must divide that.
Alternative micro_batches_of(int64_t batch, const Recipe& recipe);

}  // namespace snug
