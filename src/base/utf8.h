#pragma once
// UTF-8 text: validity, repair and canonical composition (NFC). It knows nothing of tokens.

#include <string>
#include <string_view>

namespace snug {

bool is_utf8(std::string_view text);

// `text` with every maximal invalid part replaced by U+FFFD, as Rust's from_utf8_lossy and Python's errors="replace" do.
std::string utf8_lossy(std::string_view text);

// `text` (valid UTF-8) in Unicode's composed form; Unicode version as utf8proc has it. Throws Error on inputs that it cannot
// map.
std::string nfc(std::string_view text);

// True if `text` (valid UTF-8) can be seen to be NFC already by its bytes alone: nothing at or above U+0300.
bool is_plainly_nfc(std::string_view text);

// Bytes of the character that starts with `lead`, in valid UTF-8.
inline size_t utf8_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

}  // namespace snug
