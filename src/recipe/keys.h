#pragma once
// The one table of recipe keys: names of the Hugging Face world, aliases of other trainers, type, help, default, and how to
// set and show each. YAML files and flags both come through `apply`, so they cannot differ. Adding a key is adding a row.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/recipe.h"

namespace snug {

enum class KeyType : uint8_t { boolean, integer, number, text, list, choice, size, map };

// The value of a key as it was written: one scalar, or several.
using KeyValues = std::span<const std::string>;

struct Key {
  std::string_view name;                  // "per_device_train_batch_size"
  std::vector<std::string_view> aliases;  // other trainers' names and short flags
  KeyType type = KeyType::text;
  std::string_view help;                          // one sentence
  std::string_view values;                        // what may be written: "true|false", "at least 1"
  std::function<void(Recipe&, KeyValues)> set;    // throws Error without `where`
  std::function<std::string(const Recipe&)> get;  // text that `set` takes back; empty function: the key only sets others
  std::function<bool(KeyValues)> foreign;  // true for values that are another program's and have no effect; may be empty
  // That `set` takes beside those of `values`, such as other trainers' names; of a map its names, if it takes no others.
  std::vector<std::string_view> words;

  // The default as text, from a fresh Recipe.
  std::string default_text() const { return get ? get(Recipe{}) : std::string(); }
};

// Every key, in the order in which help and written recipes list them.
const std::vector<Key>& recipe_keys();

// The key with this name or alias; dashes and underscores are the same. Null if there is none.
const Key* find_key(std::string_view name);

// The valid key that is most like `name`.
std::string nearest_key(std::string_view name);  // "": none that may have been meant

// What became of a key: `set` changed the recipe; `passed_over` is known and has no effect here.
enum class Applied : uint8_t { set, passed_over };

// Sets `key` from the text of a flag or scalar; lists are separated by commas; an empty value of a boolean means true.
// Throws Error with `where`: unknown key (naming the nearest), bad value, or a feature that is not supported (with the
// reason).
Applied apply(Recipe& recipe, std::string_view key, std::string_view value, const std::string& where = {});

// The same for a YAML sequence.
Applied apply_list(Recipe& recipe, std::string_view key, KeyValues values, const std::string& where = {});

// Throws Error if the recipe's keys contradict each other. Checks that need the model come later.
void validate(const Recipe& recipe);

}  // namespace snug
