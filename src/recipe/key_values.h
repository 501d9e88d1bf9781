#pragma once
// What may be written for a key, as data: read from `values` of its row, which people read too ("auto or at least 1"). For
// those who check a recipe, or complete one, without this program.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/keys.h"

namespace snug {

struct NumberRange {
  std::optional<double> least, most;
  bool above = false, below = false;  // `least`, `most` themselves are out

  bool operator==(const NumberRange&) const = default;
};

struct KeyGrammar {
  std::vector<std::string> words;      // that stand for themselves: "auto", "true"; of a list those that it may hold
  std::optional<NumberRange> numbers;  // "at least 1", "from 0 to less than 1"
  std::string names;                   // what a value names: "FILE", "DIRECTORY", "NAME"; "": nothing that there is
  bool open = false;                   // other words too, of which examples are given: "q_proj,v_proj,…"
  std::string pair;                    // of an example "momentum=0.9" what stands before the =

  bool operator==(const KeyGrammar&) const = default;
};

KeyGrammar grammar_of(const Key& key);

// Whether the key takes several values, as a list.
bool takes_list(const Key& key);

}  // namespace snug
