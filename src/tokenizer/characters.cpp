#include "tokenizer/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <string_view>

#include "tokenizer/unicode_tables.h"

namespace snug {
namespace {

bool within(std::span<const CodeRange> ranges, uint32_t character) {
  const auto after = std::ranges::upper_bound(ranges, character, {}, &CodeRange::first);
  return after != ranges.begin() && character <= (after - 1)->last;
}

// The two letters of the general category.
std::string_view category(uint32_t character) {
  const std::string_view known = utf8proc_category_string(static_cast<utf8proc_int32_t>(character));
  if (known != "Cn") return known;
  for (const NamedRange& range : younger_ranges()) {
    const std::string_view name = range.name;
    if (name.size() == 2 && character >= range.first && character <= range.last) return name;
  }
  return known;
}

}  // namespace

bool is_space(uint32_t c) {
  if (c < 0x80) return c == 0x20 || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_number(uint32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return category(c)[0] == 'N' || within(other_number_ranges(), c);
}

bool is_punctuation(uint32_t c) {
  if (c < 0x80) return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  return category(c)[0] == 'P' ? !within(punctuation_since_ranges(), c) : within(punctuation_once_ranges(), c);
}

bool is_word_character(uint32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  const std::string_view name = category(c);
  if (name[0] == 'L' || name[0] == 'M' || name == "Nd" || name == "Nl" || name == "Pc") return true;
  return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

bool is_combining_mark(uint32_t c) {
  if (c < 0x300) return false;
  return category(c)[0] == 'M' ? !within(inert_ranges(), c) : within(combining_once_ranges(), c);
}

Lowercase lowercase(uint32_t c) {
  if (c < 0x80) return {c >= 'A' && c <= 'Z' ? c + 32 : c, 0};
  if (c == 0x130) return {'i', 0x307};
  const auto pairs = lowercase_pairs();
  const auto found = std::ranges::lower_bound(pairs, c, {}, &CodePair::from);
  if (found != pairs.end() && found->from == c) return {found->to, 0};
  return {static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), 0};
}

}  // namespace snug
