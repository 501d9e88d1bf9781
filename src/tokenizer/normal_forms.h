#pragma once
// Unicode's normal forms (UAX #15) with their origins: each resulting character says how many characters of the input it
// stands for, in the way of the crate `unicode-normalization-alignments`, and by Unicode 9 as there. Data from utf8proc.

#include <cstdint>

#include "tokenizer/aligned_text.h"

namespace snug {

enum class NormalForm : uint8_t { nfc, nfd, nfkc, nfkd };

// True if `text` is in the form already, as far as single characters can tell.
bool is_plainly_normal(std::string_view text, NormalForm form);

// Appends `from` in the form.
void append_normal_form(const TextPiece& from, NormalForm form, AlignedText& to);

}  // namespace snug
