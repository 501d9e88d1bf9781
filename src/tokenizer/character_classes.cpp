#include "tokenizer/character_classes.h"

#include <utf8proc.h>

#include <algorithm>
#include <string_view>

#include "tokenizer/characters.h"
#include "tokenizer/unicode_tables.h"

namespace snug {
namespace {

using Classes = CharacterClasses;

// Of a general category ("Lu") other than white space.
uint8_t classes_of(std::string_view category) {
  if (category[0] == 'N') return Classes::kNumber;
  if (category[0] == 'M') return Classes::kSign | Classes::kUpper | Classes::kLower;
  if (category[0] != 'L') return Classes::kSign;
  if (category == "Ll") return Classes::kLetter | Classes::kLower;
  if (category == "Lu" || category == "Lt") return Classes::kLetter | Classes::kUpper;
  return Classes::kLetter | Classes::kUpper | Classes::kLower;
}

}  // namespace

const CharacterClasses& CharacterClasses::get() {
  static const CharacterClasses classes;
  return classes;
}

CharacterClasses::CharacterClasses() : table_(kTableEnd) {
  for (uint32_t c = 0; c < kTableEnd; ++c)
    table_[c] = is_space(c) ? kSpace : classes_of(utf8proc_category_string(static_cast<utf8proc_int32_t>(c)));
  for (const NamedRange& range : younger_ranges()) {
    const std::string_view name = range.name;
    if (name.size() != 2) continue;  // a script
    std::fill(table_.begin() + range.first, table_.begin() + std::min(range.last + 1, kTableEnd), classes_of(name));
  }
  table_['\r'] = table_['\n'] = kSpace | kLineEnd;
}

}  // namespace snug
