#pragma once
// Classes of characters that published pre-tokenizers tell apart, in one table: the categories of Unicode 16, as regular
// expressions here know them (regex.h). For this room alone.

#include <cstdint>
#include <vector>

namespace snug {

class CharacterClasses {
 public:
  // Every character has one of the first four, and may have others.
  static constexpr uint8_t kLetter = 1;    // \p{L}
  static constexpr uint8_t kNumber = 2;    // \p{N}
  static constexpr uint8_t kSpace = 4;     // \s
  static constexpr uint8_t kSign = 8;      // [^\s\p{L}\p{N}], marks too
  static constexpr uint8_t kLineEnd = 16;  // [\r\n]
  static constexpr uint8_t kUpper = 32;    // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
  static constexpr uint8_t kLower = 64;    // [\p{Ll}\p{Lm}\p{Lo}\p{M}]

  // Made when it is first asked for.
  static const CharacterClasses& get();

  uint8_t of(uint32_t character) const {
    if (character < table_.size()) return table_[character];
    const bool mark = character >= kLastMarks && character <= kLastMarksEnd;
    return mark ? kSign | kUpper | kLower : kSign;
  }

 private:
  static constexpr uint32_t kTableEnd = 0x32400;  // from here on there are no letters and numbers, and marks only in
  static constexpr uint32_t kLastMarks = 0xE0100, kLastMarksEnd = 0xE01EF;  // the variation selectors

  CharacterClasses();

  std::vector<uint8_t> table_;
};

}  // namespace snug
