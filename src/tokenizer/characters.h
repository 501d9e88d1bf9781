#pragma once
// Kinds of characters, as the parts of Hugging Face's `tokenizers` tell them apart (each part by another Unicode version,
// see unicode_tables.h).

#include <cstdint>

namespace snug {

bool is_space(uint32_t character);           // Unicode's White_Space
bool is_number(uint32_t character);          // categories N
bool is_punctuation(uint32_t character);     // categories P and the ASCII signs
bool is_word_character(uint32_t character);  // \w of Rust's regular expressions
bool is_combining_mark(uint32_t character);  // categories M

struct Lowercase {
  uint32_t first, second;  // second: 0 if there is one alone
};
Lowercase lowercase(uint32_t character);

}  // namespace snug
